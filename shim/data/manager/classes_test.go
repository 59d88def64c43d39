package manager

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
		if first, err := l.share(t.Context(), written(step.made)); err != nil || first != (step.made == step.want) {
			t.Errorf("%+v: first: %t, %v", step, first, err)
		}
		var got strings.Builder
		if err := l.read(t.Context(), &got); err != nil || got.String() != step.want {
			t.Errorf("%+v: read %q, %v", step, &got, err)
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
	_, err = l.share(t.Context(), written("one\n"))
	if err = l.explain("hdfs://nn/s", err); err == nil || !strings.HasPrefix(err.Error(), "share the list of splits in hdfs://nn/s: ") {
		t.Errorf("got %v", err)
	}
}

func written(text string) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.WriteString(to, text)
		return err
	}
}

// A list of any length costs the agent next to no memory, and each split is one reader's.
func TestLongListOfSplits(t *testing.T) {
	work := t.TempDir()
	m := &Manager{cfg: Config{WorkDir: work}}
	p := plan.Plan{Process: plan.Process{Folder: filepath.Join(work, "worker-0")}}
	const all = 200_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := m.keepSplits(p, func(to io.Writer) error {
		b := bufio.NewWriterSize(to, 1000) // lines are cut anywhere
		for i := range all {
			fmt.Fprintf(b, "%d:%0190d\n", i, i)
		}
		return b.Flush()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	runtime.ReadMemStats(&after)
	if l.all != all || l.bytes < 2*16<<20 {
		t.Errorf("got %d splits of %d bytes, want %d", l.all, l.bytes, all)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 16<<20 {
		t.Errorf("the heap has grown by %d bytes with a list of %d", grown, l.bytes)
	}
	for _, shuffle := range []bool{false, true} {
		had := make([]int, all)
		for worker := range 3 {
			turn := stream.Turn{Workers: 3, Worker: worker, Shuffle: shuffle}
			var own bytes.Buffer
			if err := l.feedOwn(t.Context(), turn, &own); err != nil {
				t.Fatal(err)
			}
			n := 0
			for line := range strings.Lines(own.String()) {
				number, _, _ := strings.Cut(line, ":")
				i, err := strconv.Atoi(number)
				if err != nil || !turn.Has(i, all) || len(line) != len(number)+192 {
					t.Fatalf("%+v: got the line %q, %v", turn, line, err)
				}
				had[i]++
				n++
			}
			if n != turn.Count(all) {
				t.Errorf("%+v: got %d splits, want %d", turn, n, turn.Count(all))
			}
		}
		if i := slices.IndexFunc(had, func(n int) bool { return n != 1 }); i >= 0 {
			t.Errorf("shuffle %t: split %d was given %d times", shuffle, i, had[i])
		}
	}
}

// A class that makes splits without end is stopped, and the error says what to do.
func TestEndlessListOfSplits(t *testing.T) {
	l := &splitList{bytes: mostSplits}
	if _, err := l.Write([]byte("one more\n")); err == nil || !strings.Contains(err.Error(), "longer than 1024 MB: ask for fewer with muster.inputs.splits") {
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
