package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

func leaveOf(opened store.Store, out, folder string) Leave {
	return Leave{Store: opened, Out: out, Folder: folder, Run: "app@1", Turn: "t1"}
}

func TestLeave(t *testing.T) {
	out, from := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"model": "m", "sub/x": "1", "sub/none/": ""})
	if err := os.Symlink("model", filepath.Join(from, "latest")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(from, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, other := leaveOf(localStore(t), out, "worker-0"), leaveOf(localStore(t), out, "worker-1")
	for _, l := range []Leave{first, other} {
		must(t, l.Prepare(t.Context()))
	}
	left, err := first.Upload(t.Context(), folder.Root(t, from), transfer.Transfer{Parallel: 4})
	if err != nil || left.Files != 3 || left.Bytes != 3 || fmt.Sprint(left.Skipped) != "[pipe]" {
		t.Fatalf("got %+v, %v", left, err)
	}
	const below = "latest=m %[1]smodel=m %[1]ssub/none/ %[1]ssub/x=1"
	const at = "_temporary/app@1/worker-0/whole/"
	if got, want := folder.Content(t, out), at+fmt.Sprintf(below, at)+" _temporary/app@1/worker-1/"; got != want {
		t.Errorf("before the verdict: got %s, want %s", got, want)
	}
	published, err := first.Publish(t.Context())
	if done, bad := first.Conclude(t.Context(), true); err != nil || bad != nil || done || !published {
		t.Errorf("published %t, %v; concluded %t, %v, while another is open", published, err, done, bad)
	}
	if published, err := other.Publish(t.Context()); err != nil || published {
		t.Errorf("of nothing: published %t, %v", published, err)
	}
	if done, err := other.Conclude(t.Context(), true); err != nil || !done {
		t.Errorf("the last: concluded %t, %v", done, err)
	}
	if got, want := folder.Content(t, out), "_SUCCESS= worker-0/"+fmt.Sprintf(below, "worker-0/"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Of two apps with one place the one that comes later hears of the other, where both would have the same name.
func TestRivals(t *testing.T) {
	out := t.TempDir()
	folder.Lay(t, out, map[string]string{
		"_temporary/app@0@x/worker-0/half-a/m": "", "_temporary/other@1@y/worker-0/half-b/m": "", "_temporary/third@1@z/worker-1/whole/m": "",
	})
	l := leaveOf(localStore(t), out, "worker-0")
	must(t, l.Prepare(t.Context()))
	rivals, err := l.Rivals(t.Context())
	must(t, err)
	if want := []string{"other@1@y"}; !slices.Equal(rivals, want) {
		t.Errorf("got %q, want %q", rivals, want)
	}
	if rivals, err := leaveOf(localStore(t), t.TempDir(), "worker-0").Rivals(t.Context()); err != nil || len(rivals) > 0 {
		t.Errorf("of a place that nobody has: got %q, %v", rivals, err)
	}
}

func TestPrepareLooksOncePerRun(t *testing.T) {
	for _, tt := range []struct{ name, there, taken string }{
		{"nothing", "", ""},
		{"an empty folder", "worker-0/", ""},
		{"an output", "worker-0/model", "worker-0/model"},
		{"a success", "_SUCCESS", "_SUCCESS"},
		{"a stranger's file", "notes.txt", "notes.txt"},
		{"a dead run of the app", "_temporary/app@0/worker-0/whole/model", ""},
		{"another app's", "_temporary/other@1/worker-0/whole/model", ""},
		{"an output nested in this one that is begun", "inner/_temporary/app@1/worker-0/half-x/a", ""},
		{"interim saves", "interResult/interResult_2026_01_02_03_04_05/worker-0/model", ""},
		{"this run's own", "_temporary/app@1/worker-1/ worker-0/model", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, there := t.TempDir(), map[string]string{}
			for name := range strings.FieldsSeq(tt.there) {
				there[name] = ""
			}
			folder.Lay(t, out, there)
			err := leaveOf(localStore(t), out, "worker-0").Prepare(t.Context())
			taken, ok := errors.AsType[*TakenError](err)
			if ok != (tt.taken != "") || err != nil && !ok {
				t.Fatalf("got %v", err)
			}
			if ok && (taken.Path != filepath.Join(out, tt.taken) || !strings.Contains(err.Error(), "remove it, or name another place")) {
				t.Errorf("got %v, want %s and what to do", err, tt.taken)
			}
			if strings.Contains(folder.Content(t, out), "app@0") {
				t.Error("what a dead run of the app has left is still there")
			}
		})
	}
	out := t.TempDir()
	file := filepath.Join(out, "file")
	folder.Lay(t, out, map[string]string{"file": ""})
	if _, ok := errors.AsType[*TakenError](leaveOf(localStore(t), file, "w-0").Prepare(t.Context())); !ok {
		t.Error("a file in the place of the folder is not refused")
	}
	l := leaveOf(localStore(t), t.TempDir(), "w-0")
	l.Saves = "/interResult_"
	folder.Lay(t, l.Out, map[string]string{"interResult_2026_01_02_03_04_05/w-0/model": ""})
	if err := l.Prepare(t.Context()); err != nil {
		t.Errorf("XLearning's interim saves: got %v", err)
	}
}

// What a former attempt left is replaced, and what a killed one left half goes.
func TestUploadReplaces(t *testing.T) {
	out := t.TempDir()
	l := leaveOf(localStore(t), out, "w-0")
	must(t, l.Prepare(t.Context()))
	for i, content := range []map[string]string{{"a": "1", "b": "1"}, {"a": "2"}, {}} {
		from := t.TempDir()
		folder.Lay(t, from, content)
		if _, err := l.Upload(t.Context(), folder.Root(t, from), transfer.Transfer{}); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"_temporary/app@1/w-0/whole/a=1 _temporary/app@1/w-0/whole/b=1", "_temporary/app@1/w-0/whole/a=2", "_temporary/app@1/w-0/",
		}[i]
		if got := folder.Content(t, out); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	folder.Lay(t, out, map[string]string{"_temporary/app@1/w-0/half-dead/x": "half", "_temporary/app@1/w-0/whole/a": "3"})
	must(t, l.Prepare(t.Context()))
	if got, want := folder.Content(t, out), "_temporary/app@1/w-0/whole/a=3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must(t, l.GiveUp(t.Context()))
	if done, err := l.Conclude(t.Context(), false); !done || err != nil || folder.Content(t, out) != "" {
		t.Errorf("after a failure: %t, %v, there is %s", done, err, folder.Content(t, out))
	}
}

func TestUploadRefusesLinksOut(t *testing.T) {
	out, from := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"a": "1"})
	if err := os.Symlink("/etc/hostname", filepath.Join(from, "host")); err != nil {
		t.Fatal(err)
	}
	l := leaveOf(localStore(t), out, "w-0")
	_, err := l.Upload(t.Context(), folder.Root(t, from), transfer.Transfer{Parallel: 1})
	if err == nil || !strings.Contains(err.Error(), "host") || folder.Content(t, out) != "" {
		t.Errorf("got %v, and there is %s", err, folder.Content(t, out))
	}
}

// A name that a stranger has taken meanwhile stays his, and nothing is lost.
func TestPublishKeepsWhatIsThere(t *testing.T) {
	out, from := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"a": "mine"})
	l := leaveOf(localStore(t), out, "w-0")
	must(t, l.Prepare(t.Context()))
	_, err := l.Upload(t.Context(), folder.Root(t, from), transfer.Transfer{})
	must(t, err)
	folder.Lay(t, out, map[string]string{"w-0/a": "his"})
	_, err = l.Publish(t.Context())
	if _, ok := errors.AsType[*TakenError](err); !ok {
		t.Errorf("got %v", err)
	}
	if done, err := l.Conclude(t.Context(), true); done || err != nil {
		t.Errorf("concluded %t, %v", done, err)
	}
	if got, want := folder.Content(t, out), "_temporary/app@1/w-0/whole/a=mine w-0/a=his"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// errKilled is the end of a process that was at work on a store.
var errKilled = errors.New("killed")

// mortal is a store whose user is killed at its nth operation: that one is done, half done or not at all, and all later
// ones are not.
type mortal struct {
	store.Store
	left  *int // operations until the end
	rng   *rand.Rand
	whole bool // the last one is done
}

func (m mortal) die() (now, before bool) {
	*m.left--
	return *m.left == 0, *m.left < 0
}

func (m mortal) do(act func() error) error {
	now, before := m.die()
	if before || now && !m.whole {
		return errKilled
	}
	err := act()
	if now {
		return errKilled
	}
	return err
}

func (m mortal) Stat(ctx context.Context, path string) (i store.Info, err error) {
	err = m.do(func() (err error) { i, err = m.Store.Stat(ctx, path); return err })
	return i, err
}

func (m mortal) List(ctx context.Context, path string) (i []store.Info, err error) {
	err = m.do(func() (err error) { i, err = m.Store.List(ctx, path); return err })
	return i, err
}

func (m mortal) Rename(ctx context.Context, from, to string) error {
	return m.do(func() error { return m.Store.Rename(ctx, from, to) })
}

func (m mortal) MkdirAll(ctx context.Context, path string) error {
	return m.do(func() error { return m.Store.MkdirAll(ctx, path) })
}

func (m mortal) Prune(ctx context.Context, path string) error {
	return m.do(func() error { return m.Store.Prune(ctx, path) })
}

// Remove of a folder may be cut off when some of it is gone.
func (m mortal) Remove(ctx context.Context, path string) error {
	now, before := m.die()
	if before {
		return errKilled
	}
	if !now {
		return m.Store.Remove(ctx, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return errKilled
	}
	_ = os.RemoveAll(filepath.Join(path, entries[m.rng.IntN(len(entries))].Name()))
	return errKilled
}

// Create may be cut off when some of the bytes are written.
func (m mortal) Create(ctx context.Context, path string) (w io.WriteCloser, err error) {
	now, before := m.die()
	if before || now && !m.whole {
		return nil, errKilled
	}
	w, err = m.Store.Create(ctx, path)
	if err != nil || !now {
		return w, err
	}
	if filepath.Base(path) != transfer.Success {
		_, _ = w.Write([]byte("h"))
	}
	return nil, errors.Join(errKilled, w.Close())
}

// life is what agents do to the outputs of a job with three instances: each prepares, uploads and, once the verdict is
// there, settles its own; the last one concludes.
type life struct {
	t       *testing.T
	out     string
	from    []string
	verdict string // succeeded, failed
	ended   [3]bool
}

func (l *life) leave(opened store.Store, i int, turn string) Leave {
	return Leave{Store: opened, Out: l.out, Folder: fmt.Sprintf("w-%d", i), Run: "app@1", Turn: turn}
}

// work is an instance's life before the verdict, from a start of its agent on.
func (l *life) work(ctx context.Context, opened store.Store, i int, turn string) error {
	if l.ended[i] {
		return nil // the registry knows: its result counts
	}
	leave := l.leave(opened, i, turn)
	if err := leave.Prepare(ctx); err != nil {
		return err
	}
	root, err := os.OpenRoot(l.from[i])
	if err != nil {
		return err
	}
	_, err = leave.Upload(ctx, root, transfer.Transfer{Parallel: 1})
	if err = errors.Join(err, root.Close()); err == nil {
		l.ended[i] = true
	}
	return err
}

// settle is an instance's part after the verdict.
func (l *life) settle(ctx context.Context, opened store.Store, i int) error {
	leave := l.leave(opened, i, "late")
	err := error(nil)
	if l.verdict == "succeeded" {
		_, err = leave.Publish(ctx)
	} else {
		err = leave.GiveUp(ctx)
	}
	if err == nil {
		_, err = leave.Conclude(ctx, l.verdict == "succeeded")
	}
	return err
}

// The law of outputs: whoever is killed at whatever operation on the store, under a final name is nothing or all; before the
// verdict nothing is; _SUCCESS says that all is there; and who comes after completes it.
func TestLeaveSurvivesEveryDeath(t *testing.T) {
	ctx := t.Context()
	for _, verdict := range []string{"succeeded", "failed"} {
		for victim := range 3 {
			for _, whole := range []bool{false, true} {
				for death := 1; ; death++ {
					l := &life{t: t, out: filepath.Join(t.TempDir(), "out"), verdict: verdict}
					l.from = []string{t.TempDir(), t.TempDir(), t.TempDir()}
					folder.Lay(t, l.from[0], map[string]string{"model": "m0", "d/x": "x0"})
					folder.Lay(t, l.from[1], map[string]string{"model": "m1"})
					// the third leaves nothing
					left := death
					opened := mortal{localStore(t), &left, rand.New(rand.NewPCG(uint64(death), 1)), whole}
					of := func(i int) store.Store {
						if i == victim {
							return opened
						}
						return localStore(t)
					}
					l.through(ctx, of, victim)
					if left > 0 {
						break // it has outlived all it does
					}
				}
			}
		}
	}
}

// through lets the job live; the victim is killed on the way and started again.
func (l *life) through(ctx context.Context, of func(int) store.Store, victim int) {
	l.t.Helper()
	for i := range 3 {
		if err := l.work(ctx, of(i), i, "first"); err != nil && (i != victim || !errors.Is(err, errKilled)) {
			l.t.Fatal(err)
		}
		l.nothing("before the verdict")
	}
	if err := l.work(ctx, localStore(l.t), victim, "second"); err != nil {
		l.t.Fatalf("started again: %v", err)
	}
	l.nothing("before the verdict")
	for i := range 3 {
		if err := l.settle(ctx, of(i), i); err != nil && (i != victim || !errors.Is(err, errKilled)) {
			l.t.Fatal(err)
		}
		l.whole()
	}
	if err := l.settle(ctx, localStore(l.t), victim); err != nil {
		l.t.Fatalf("started again after the verdict: %v", err)
	}
	l.whole()
	got, want := folder.Content(l.t, l.out), ""
	if l.verdict == "succeeded" {
		want = "_SUCCESS= w-0/d/x=x0 w-0/model=m0 w-1/model=m1"
	}
	if got != want {
		l.t.Fatalf("at the end: got %s, want %s", got, want)
	}
}

// nothing holds that nobody sees anything of the job yet.
func (l *life) nothing(when string) {
	l.t.Helper()
	entries, err := os.ReadDir(l.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != transfer.Temporary {
			l.t.Fatalf("%s there is %s", when, e.Name())
		}
	}
}

// whole holds that what has its name is all there, and that _SUCCESS comes last.
func (l *life) whole() {
	l.t.Helper()
	if l.verdict != "succeeded" {
		l.nothing("after a failure")
		return
	}
	want := []string{"d/x=x0 model=m0", "model=m1"}
	seen := 0
	for i, content := range want {
		dir := filepath.Join(l.out, fmt.Sprintf("w-%d", i))
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if seen++; folder.Content(l.t, dir) != content {
			l.t.Fatalf("w-%d is half there: %s", i, folder.Content(l.t, dir))
		}
	}
	if _, err := os.Stat(filepath.Join(l.out, transfer.Success)); err == nil && seen < len(want) {
		l.t.Fatalf("_SUCCESS over %d of %d: %s", seen, len(want), folder.Content(l.t, l.out))
	}
}

// Several that settle the same place at once agree.
func TestPublishBySeveral(t *testing.T) {
	for range 50 {
		out, from := t.TempDir(), t.TempDir()
		folder.Lay(t, from, map[string]string{"a": "1"})
		l := leaveOf(localStore(t), out, "w-0")
		must(t, l.Prepare(t.Context()))
		_, err := l.Upload(t.Context(), folder.Root(t, from), transfer.Transfer{})
		must(t, err)
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := l.Publish(t.Context())
				if err == nil {
					_, err = l.Conclude(t.Context(), true)
				}
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := folder.Content(t, out); got != "_SUCCESS= w-0/a=1" {
			t.Fatalf("got %s", got)
		}
	}
}

// restless is a Store during whose copying the process writes on.
type restless struct {
	store.Store
	during func(path string)
}

func (r restless) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	r.during(path)
	return r.Store.Create(ctx, path)
}

// All files of a save are one transfer: its progress is told as a whole.
func TestSaveTellsItsProgress(t *testing.T) {
	from, out := t.TempDir(), t.TempDir()
	files := map[string]string{}
	for i := range 25 {
		files[fmt.Sprintf("part-%d", i)] = strings.Repeat("x", 100)
	}
	folder.Lay(t, from, files)
	root, err := os.OpenRoot(from)
	must(t, err)
	defer root.Close()
	var told []transfer.Progress
	save := Save{Leave: leaveOf(localStore(t), out, "w-0"), Stamp: "2026_01_02_03_04_05"}
	saved, err := save.Run(t.Context(), root, transfer.Transfer{Report: func(p transfer.Progress) { told = append(told, p) }})
	must(t, err)
	if saved.Files != 25 || len(told) != 1 || told[0].Files != 25 || told[0].All != 25 || told[0].Bytes != 2500 || !told[0].Ended {
		t.Errorf("saved %d files and was told %+v, want one end of 25 files and 2500 bytes", saved.Files, told)
	}
}

func TestSave(t *testing.T) {
	out, from := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"model": "m", "log": "", "short": "s", "d/x": "1"})
	grow := func(name string) {
		f, err := os.OpenFile(filepath.Join(from, name), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("+")
			err = errors.Join(err, f.Close())
		}
		must(t, err)
	}
	once := true
	opened := restless{localStore(t), func(path string) {
		switch filepath.Base(path) {
		case "log": // written to without end
			grow("log")
		case "model": // while it is copied first
			if once {
				grow("model")
				once = false
			}
		case "short":
			_ = os.Remove(filepath.Join(from, "short"))
		}
	}}
	s := Save{Leave: leaveOf(opened, out, "w-0"), Stamp: "2026_01_02_03_04_05"}
	must(t, s.Prepare(t.Context()))
	saved, err := s.Run(t.Context(), folder.Root(t, from), transfer.Transfer{Parallel: 2})
	if err != nil || saved.Files != 2 || !slices.Equal(saved.Restless, []string{"log", "short"}) {
		t.Fatalf("got %+v, %v", saved, err)
	}
	const first = "interResult/interResult_2026_01_02_03_04_05/w-0/d/x=1 interResult/interResult_2026_01_02_03_04_05/w-0/model=m+"
	if got, want := folder.Content(t, out), "_temporary/app@1/w-0/ "+first; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	s.Stamp, s.Since, s.Store = "2026_01_02_03_05_00", saved.Seen, localStore(t)
	grow("d/x")
	saved, err = s.Run(t.Context(), folder.Root(t, from), transfer.Transfer{Parallel: 2})
	if err != nil || saved.Files != 2 {
		t.Fatalf("only what has changed: got %+v, %v", saved, err)
	}
	second := "interResult/interResult_2026_01_02_03_05_00/w-0/"
	if got, want := folder.Content(t, out), "_temporary/app@1/w-0/ "+first+" "+second+"d/x=1+ "+second+"log=+++"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the process ended")
	s.Stamp, s.Since = "2026_01_02_03_06_00", nil
	s.Store = restless{localStore(t), func(string) { cancel(over) }}
	if _, err := s.Run(ctx, folder.Root(t, from), transfer.Transfer{Parallel: 1}); !errors.Is(err, over) {
		t.Errorf("called off: got %v", err)
	}
	if got := folder.Content(t, out); strings.Contains(got, "06_00") || strings.Contains(got, "half-") {
		t.Errorf("called off, and there is %s", got)
	}
}

// Whoever is killed at whatever operation of a save: it has its name whole or not at all, and the outputs go on as if it
// had never been.
func TestSaveSurvivesEveryDeath(t *testing.T) {
	for _, whole := range []bool{false, true} {
		for death := 1; ; death++ {
			out, from := t.TempDir(), t.TempDir()
			folder.Lay(t, from, map[string]string{"model": "m", "d/x": "1"})
			must(t, leaveOf(localStore(t), out, "w-0").Prepare(t.Context()))
			left := death
			opened := mortal{localStore(t), &left, rand.New(rand.NewPCG(uint64(death), 2)), whole}
			s := Save{Leave: leaveOf(opened, out, "w-0"), Stamp: "2026_01_02_03_04_05"}
			_, err := s.Run(t.Context(), folder.Root(t, from), transfer.Transfer{Parallel: 1})
			if (left > 0) != (err == nil) {
				t.Fatalf("death %d: got %v", death, err)
			}
			saved := filepath.Join(out, "interResult", "interResult_2026_01_02_03_04_05", "w-0")
			if _, lost := os.Stat(saved); lost == nil && folder.Content(t, saved) != "d/x=1 model=m" || err == nil && lost != nil {
				t.Fatalf("death %d: the save holds %s (%v)", death, folder.Content(t, saved), lost)
			}
			l := leaveOf(localStore(t), out, "w-0")
			l.Turn = "t2" // of the agent that comes back
			must(t, l.Prepare(t.Context()))
			_, err = l.Upload(t.Context(), folder.Root(t, from), transfer.Transfer{Parallel: 1})
			must(t, err)
			_, err = l.Publish(t.Context())
			must(t, err)
			if done, err := l.Conclude(t.Context(), true); !done || err != nil || folder.Content(t, filepath.Join(out, "w-0")) != "d/x=1 model=m" {
				t.Fatalf("death %d: concluded %t, %v", death, done, err)
			}
			if _, err := os.Stat(filepath.Join(out, transfer.Temporary)); err == nil {
				t.Fatalf("death %d: there is %s", death, folder.Content(t, out))
			}
			if left > 0 {
				break // it has outlived all it does
			}
		}
	}
}

// Whoever looks after the results have been moved away makes no success out of nothing.
func TestConcludeOfNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if done, err := leaveOf(localStore(t), out, "w-0").Conclude(t.Context(), true); done || err != nil {
		t.Errorf("got %t, %v", done, err)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is %s", folder.Content(t, out))
	}
}

// Links that make of a few folders more than anybody has are called off, and bounded.
func TestUploadOfLinkedFolders(t *testing.T) {
	from := t.TempDir()
	for i := range 7 {
		must(t, os.Mkdir(filepath.Join(from, fmt.Sprint("d", i)), 0o755))
	}
	for i := range 6 {
		for k := range 40 {
			must(t, os.Symlink(fmt.Sprintf("../d%d", i+1), filepath.Join(from, fmt.Sprint("d", i), fmt.Sprint("l", k))))
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go cancel(enough)
	_, err := leaveOf(localStore(t), t.TempDir(), "w-0").Upload(ctx, folder.Root(t, from), transfer.Transfer{})
	if !errors.Is(err, enough) {
		t.Errorf("got %v, want that it is called off", err)
	}
}

// A refusal names the folder of the definition, and none that muster makes in it.
func TestPrepareRefused(t *testing.T) {
	need.Root(t)
	for name, lay := range map[string]func(dir string) (out string){
		"a folder to be made": func(dir string) string { return filepath.Join(dir, "models", "m") },
		"a folder of another": func(dir string) string { return dir },
		"one that is closed":  func(dir string) string { must(t, os.Chmod(dir, 0o700)); return dir },
		"one below a closed":  func(dir string) string { must(t, os.Chmod(dir, 0o700)); return filepath.Join(dir, "m") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder.Temp(t, "ml-")
			out := lay(dir)
			user := files.As(&plan.UserFacts{UID: 64001, GID: 64001})
			opened, path, err := files.Admission{
				Work: t.TempDir(), Root: plan.RootHost, User: user, Policy: policy.Policy{Roots: []policy.Root{{Path: dir}}},
			}.Open(out, true)
			must(t, err)
			err = leaveOf(opened, path, "worker-0").Prepare(t.Context())
			want := "output " + out + ": as uid 64001, which the process has on this host: write to " + out + ": permission denied; let this user make " +
				out + " and write to it, or name another folder"
			if err == nil || err.Error() != want || !errors.Is(err, fs.ErrPermission) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}
