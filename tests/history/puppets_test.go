package history

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Two processes of one rank are seen: by the lock that the second finds held, and by the looks at the first.
func TestTwoPuppetsOfOneRankAreSeen(t *testing.T) {
	folder := t.TempDir()
	out, err := openHistory(folder)
	if err = errors.Join(err, os.Mkdir(filepath.Join(folder, locksFolder), 0o755)); err != nil {
		t.Fatal(err)
	}
	observer, stop, watched := newObserver(folder, out), make(chan struct{}), make(chan error, 1)
	go func() { watched <- observer.watch(stop) }()
	// awaited is the start of each of n puppets.
	awaited := func(n int) []event {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if all := observer.processes(); len(all) == n {
				return all
			}
		}
		t.Fatalf("%d puppets are not seen", n)
		return nil
	}
	var puppets []*exec.Cmd
	for n := range 2 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, puppetVerb)
		cmd.Env = append(os.Environ(), folderVariable+"="+folder, runVariable+"=r1", workVariable+"=600", "MUSTER_APP_ID=a",
			"MUSTER_INSTANCE=w-0", "MUSTER_GENERATION=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		puppets = append(puppets, cmd)
		awaited(n + 1)
	}
	for _, p := range puppets {
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // killed
	}
	close(stop)
	if err := <-watched; err != nil {
		t.Fatal(err)
	}
	history, _, err := readHistory(folder, 0)
	if err != nil {
		t.Fatal(err)
	}
	holder := slices.IndexFunc(history, func(e event) bool { return e.Holder != 0 })
	if holder < 0 || history[holder].Holder != puppets[0].Process.Pid || history[holder].Pid != puppets[1].Process.Pid {
		t.Errorf("%+v: want that %d found the lock of %d held", history, puppets[1].Process.Pid, puppets[0].Process.Pid)
	}
	breaches := slices.DeleteFunc(check(history), func(b string) bool { return !strings.Contains(b, "one live process per rank") })
	if len(breaches) != 2 {
		t.Errorf("got %q, want the lock and the overlap", breaches)
	}
}
