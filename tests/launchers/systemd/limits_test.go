package systemd_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry/embedded"
)

// emulated is what MUSTER_MACHINE is in the machine whose kernel keeps limits, as root.
const emulated = "v2-root"

// hungry takes more memory than it may have, once a file says so, and again and again.
const hungry = `touch "$MUSTER_CHECKPOINT_DIR/here"
until [ -e "$MUSTER_CHECKPOINT_DIR/go" ]; do sleep 0.1; done
while dd if=/dev/zero of=/dev/null bs=200M count=20 status=none; do :; done`

// TestLimits has a process take more than its limit: its own group is ended for it, in the part of the tree that the unit was
// given, and not its agent or the unit. Where the kernel keeps no limits for systemd, the agent watches, and says so.
func TestLimits(t *testing.T) {
	t.Parallel()
	if os.Getenv("MUSTER_MACHINE") != emulated {
		h, _ := inMachine(t, withMuster())
		limits(t, h, serve(t), "watched")
		return
	}
	limits(t, inThis(t), serve(t), "held", "--binary", muster)
}

// engines are what confines a process, by the name of its gang.
var engines = map[string]string{"watched": "process", "held": "cgroup"}

func limits(t *testing.T, h host, registry, name string, words ...string) {
	t.Helper()
	g := h.lay(name, 1, registry, map[string]string{"muster.command": hungry, "muster.restart": "never"}, append(words, "--instances", "ps=0")...)
	worker := g.unit("worker-0")
	h.run("systemctl", "start", g.target, worker)
	until(t, func() string {
		_, err := os.Stat(filepath.Join(g.Dir, "here"))
		return because(err)
	})
	said := h.run("journalctl", "--no-pager", "--output=cat", "--unit="+worker)
	if want := "engine=" + engines[name]; !strings.Contains(said, want) {
		t.Errorf("%s: want %s of\n%s", name, want, said)
	}
	if name == "watched" {
		if !strings.Contains(said, "the controller is not delegated to") || !strings.Contains(said, "memory is watched once a second") {
			t.Errorf("%s: it does not say that it watches:\n%s", name, said)
		}
	} else {
		wantHeld(t, h, worker)
	}
	g.Go(t, 0)
	until(t, func() string {
		if is := h.property(worker, "ActiveState"); is != "failed" {
			return worker + " is " + is + ", " + h.property(worker, "StatusText")
		}
		return ""
	})
	status, result, code := h.property(worker, "StatusText"), h.property(worker, "Result"), h.property(worker, "ExecMainStatus")
	if !strings.HasPrefix(status, "failed (out-of-memory): ") || code != "93" || result != "exit-code" {
		t.Errorf("%s: %s with %s, %q, want its agent's 93, for want of memory", worker, result, code, status)
	}
}

// wantHeld looks for the process's limit in a group of its own under the unit's, which has more.
func wantHeld(t *testing.T, h host, unit string) {
	t.Helper()
	top := filepath.Join("/sys/fs/cgroup", h.property(unit, "ControlGroup"))
	if most := limitOf(t, top); most != 96<<20 {
		t.Errorf("%s: got memory.max %d, want its process's 64 MB and 32 for the agent", unit, most)
	}
	agent, found := h.property(unit, "MainPID"), map[string]int{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == top {
			return err
		}
		procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		pids := strings.Fields(string(procs))
		if err == nil && len(pids) > 0 {
			found[path] = limitOf(t, path)
			if found[path] == 64<<20 && slices.Contains(pids, agent) {
				t.Errorf("%s: the agent is among those that its process's limit counts", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range found {
		if most == 64<<20 {
			return
		}
	}
	t.Errorf("%s: no group under it holds the process to 64 MB: %v", unit, found)
}

// limitOf is a group's memory.max, or that of the nearest above it that has one.
func limitOf(t *testing.T, group string) int {
	t.Helper()
	for ; group != "/sys/fs/cgroup"; group = filepath.Dir(group) {
		text, err := os.ReadFile(filepath.Join(group, "memory.max"))
		if err != nil {
			t.Fatal(err)
		}
		if most, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return most
		}
	}
	return 0
}

// serve is a registry of this test's own: the emulated machine has no Consul.
func serve(t *testing.T) (url string) {
	t.Helper()
	l, err := embedded.ListenLoopback(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- embedded.Serve(ctx, embedded.Options{Listener: l}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "consul://" + l.Addr().String()
}

// until looks again until there is nothing to wait for any more.
func until(t *testing.T, why func() string) {
	t.Helper()
	for end := time.Now().Add(watchdog); ; <-time.After(lookAgain) {
		text := why()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not seen within %s: %s", watchdog, text)
		}
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
