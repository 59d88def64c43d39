package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/data/stream"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
	"github.com/muster-agent/muster/tests/need"
)

// The list of the reader who is first is that of all. Those of other runs stay: they may be of another registry.
func TestSharedList(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "splits")
	reader := func(app, run, turn string) sharedList {
		return sharedList{store: file.New(file.Machine{}), runs: runs, run: filepath.Join(runs, app+"@"+run), name: "n", turn: turn}
	}
	for _, step := range []struct{ app, run, turn, made, want string }{
		{"a", "1", "x", "one\n", "one\n"},
		{"ab", "1", "x", "of another\n", "of another\n"},
		{"a", "2", "x", "two\n", "two\n"},
		{"a", "2", "y", "two in another order\n", "two\n"},
		{"a", "2", "x", "again\n", "two\n"},
	} {
		l := reader(step.app, step.run, step.turn)
		if got, err := l.share(t.Context(), step.made); err != nil || got != step.want {
			t.Errorf("%+v: got %q, %v", step, got, err)
		}
		if got, err := l.read(t.Context()); err != nil || got != step.want {
			t.Errorf("%+v: read %q, %v", step, got, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(runs, "*", "*"))
	if want := []string{"a@1/n", "a@2/n", "ab@1/n"}; err != nil || !slices.EqualFunc(left, want, func(l, w string) bool { return l == filepath.Join(runs, w) }) {
		t.Errorf("left %v, %v, want %v", left, err, want)
	}
	if err := os.RemoveAll(runs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs, nil, 0o600); err != nil { // where nobody can make a folder
		t.Fatal(err)
	}
	l := reader("a", "1", "x")
	_, err = l.share(t.Context(), "one\n")
	if err = l.explain("hdfs://nn/s", err); err == nil || !strings.HasPrefix(err.Error(), "share the list of splits in hdfs://nn/s: ") {
		t.Errorf("got %v", err)
	}
}

// A disk that is full ends the process at once, not at its end: this one never ends.
func TestKeepOnAFullDisk(t *testing.T) {
	need.Root(t)
	work := t.TempDir()
	if err := unix.Mount("tmpfs", work, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		need.Skip(t, "mount tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(work, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	theirs, said, err := sandbox.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var writer sync.WaitGroup
	writer.Go(func() { _, _ = io.CopyN(theirs, rand.Reader, 1<<20) })
	defer writer.Wait()
	defer func() { _ = said.Close() }()
	context.AfterFunc(ctx, func() { _ = said.Over() })
	pipes := Pipes{m: &Manager{cfg: Config{WorkDir: work}}, plan: plan.Plan{Process: plan.Process{Folder: filepath.Join(work, "worker-0")}}, said: said}
	g := &gathered{}
	defer g.drop()
	_, err = pipes.keep(ctx, g)
	want := []string{"keep it in " + work + "/worker-0 until the process has ended: ", "no space left on device", "; free some on the file system of " + work}
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) || store.Transient(err) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
}

func TestCannotFeed(t *testing.T) {
	for format, want := range map[string]string{
		"lab.A": "inputs: read by lab.A: no class", "": "inputs: read by lab.A: no class; mend that file, or take it out of the inputs",
	} {
		var got string
		m := &Manager{cfg: Config{Process: Process{Fail: func(why string, _ error) { got = why }}}}
		s := Pipes{m: m, plan: plan.Plan{Data: plan.Data{Inputs: &plan.Inputs{Format: format}}}}
		if s.cannotFeed(&stream.ReadError{Path: "by lab.A", Err: errors.New("no class")}); got != want {
			t.Errorf("format %q: got %q, want %q", format, got, want)
		}
	}
}
