package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/schemes"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBound(t *testing.T) {
	run := func(name string, days int, bytes int64) Entry {
		return Entry{App: "a", Run: name, Changed: day.AddDate(0, 0, -days), Bytes: bytes}
	}
	all := []Entry{run("new", 0, 10), run("old", 100, 10), run("mid", 50, 10), run("older", 200, 10)}
	for _, c := range []struct {
		name    string
		bound   Bound
		current string
		want    []string
	}{
		{"no bound", Bound{}, "new", nil},
		{"an age", Bound{Age: 90 * 24 * time.Hour}, "new", []string{"older", "old"}},
		{"a size", Bound{Bytes: 20}, "new", []string{"older", "old"}},
		{"a size that one is more than", Bound{Bytes: 39}, "new", []string{"older"}},
		{"both", Bound{Age: 150 * 24 * time.Hour, Bytes: 25}, "new", []string{"older", "old"}},
		{"the current one stays", Bound{Bytes: 1}, "older", []string{"old", "mid", "new"}},
	} {
		var got []string
		for _, e := range c.bound.over(all, Entry{App: "a", Run: c.current}, day) {
			got = append(got, e.Run)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// A sweep weighs no more than it keeps, and removes what a bound is over.
func TestBeyond(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var all []Entry
		for i := range random.IntN(60) {
			all = append(all, Entry{App: "a", Run: fmt.Sprint(i), Changed: day.AddDate(0, 0, -random.IntN(40)), Bytes: random.Int64N(9)})
		}
		most, current := 1+random.Int64N(200), Entry{App: "a", Run: fmt.Sprint(random.IntN(80))}
		want := Bound{Bytes: most}.over(all, current, day)
		bare := slices.Clone(all)
		for i := range bare {
			bare[i].Bytes = 0
		}
		weighed := 0
		got, err := beyond(most, bare, current, func(some []Entry) error {
			weighed += len(some)
			for i := range some {
				some[i].Bytes = all[slices.IndexFunc(all, func(e Entry) bool { return e.Run == some[i].Run })].Bytes
			}
			return nil
		})
		names := func(of []Entry) (out []string) {
			for _, e := range of {
				out = append(out, e.Run)
			}
			return out
		}
		if err != nil || !slices.Equal(names(got), names(want)) || weighed > len(all)-len(got)+atOnce {
			t.Fatalf("at most %d bytes of %v beside %s: got %v, want %v; %d weighed", most, all, current.Run, names(got), names(want), weighed)
		}
	}
}

func TestReplaces(t *testing.T) {
	verdict := &registry.Verdict{Run: "1"}
	run := func(v *registry.Verdict, hours int) Run {
		return Run{Verdict: v, Ended: day.Add(time.Duration(hours) * time.Hour)}
	}
	for _, c := range []struct {
		name       string
		new, there Run
		want       bool
	}{
		{"a verdict for none", run(verdict, 0), run(nil, 1), true},
		{"none for a verdict", run(nil, 1), run(verdict, 0), false},
		{"a later verdict", run(verdict, 1), run(verdict, 0), true},
		{"an earlier verdict", run(verdict, 0), run(verdict, 1), false},
		{"none for none", run(nil, 0), run(nil, 1), true},
	} {
		if got := c.new.replaces(c.there); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

// end is a gang of two as its registry shows it: worker-1 was lost.
func end(run string) consul.Status {
	member := func(in int, phase registry.Phase) consul.MemberStatus {
		return consul.MemberStatus{
			Instance: registry.Instance{Component: "worker", Index: in},
			Member:   registry.Member{Run: run, Phase: phase, Host: "h", Attempt: 2},
		}
	}
	return consul.Status{
		ID: "d1", App: registry.AppRecord{Run: run, Created: day, Token: "token-of-the-run"},
		Members: []consul.MemberStatus{member(0, registry.PhaseEnded), member(1, registry.PhaseLost)},
		Verdict: &registry.Verdict{Run: run, Outcome: registry.Failed, Cause: "worker-1 was lost"},
	}
}

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s := New("file://"+dir, schemes.Local())
	t.Cleanup(s.Close)
	return s
}

func writer(t *testing.T, dir, run string) *Writer {
	t.Helper()
	w, err := opened(t, dir).Writer(t.Context(), "d1", run, false)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func hide(text string) string { return strings.ReplaceAll(text, "swordfish", "***") }

// put leaves worker-0 of a run, with a rotated log.
func put(t *testing.T, w *Writer, generation int) {
	t.Helper()
	logs := t.TempDir()
	for name, text := range map[string]string{
		"stdout.log.1": "one\n", "stdout.log": "two\n", "events.jsonl": "{\"at\":\"2026-01-02T03:04:04Z\",\"event\":\"earlier\"}\n{\"at\":\"2026-01-02T03:04:05Z\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(logs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := registry.Instance{Component: "worker"}
	st := State{State: status.State{App: "d1", Run: w.e.Run}}
	st.Instance.Instance, st.Generation, st.Phase, st.Cause = in.String(), generation, "done", "said swordfish"
	x := status.ExitFile{App: "d1", Instance: in.String(), Verdict: &registry.Verdict{Run: w.e.Run, Outcome: registry.Failed}}
	err := w.Put(t.Context(), in, Instance{
		State: st, Exit: x, Samples: samples.Table{Version: 1, At: []int64{5, 10}}, Plan: []byte(`{"env": {"PASSWORD": "swordfish"}}`), LogDir: logs, Logs: []string{"stdout"}, Since: day,
		Hide: hide,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An app's runs may share their log folder: of its logs a run keeps what was written since it began.
func TestLogOfOneRun(t *testing.T) {
	at := func(seconds int) int64 { return day.Add(time.Duration(seconds) * time.Second).UnixMilli() }
	for _, c := range []struct {
		name         string
		rotated, log string
		marks        [][3]int64 // 1: of the rotated file; bytes; when
		want         string
	}{
		{"no marks", "one\n", "two\n", nil, "one\ntwo\n"},
		{"its own", "one\n", "two\n", [][3]int64{{1, 4, at(1)}, {0, 4, at(2)}}, "one\ntwo\n"},
		{"a run before", "", "old\nnew\n", [][3]int64{{0, 4, at(-1)}, {0, 8, at(1)}}, "new\n"},
		{"an unknown time", "", "old\nnew\n", [][3]int64{{0, 4, 0}, {0, 8, at(1)}}, "new\n"},
		{"a rotated run before", "old\n", "older\nnew\n", [][3]int64{{1, 4, at(-9)}, {0, 6, at(-1)}, {0, 10, at(1)}}, "new\n"},
		{"it was rotated since", "old\nnew\n", "newer\n", [][3]int64{{1, 4, at(-1)}, {1, 8, at(1)}, {0, 6, at(2)}}, "new\nnewer\n"},
		{"it said nothing", "", "old\n", [][3]int64{{0, 4, at(-1)}}, ""},
		{"forged", "", "old\n", [][3]int64{{0, 400, at(-1)}}, ""},
	} {
		logs := t.TempDir()
		inodes := [2]uint64{}
		for i, text := range []string{c.log, c.rotated} {
			if text == "" {
				continue
			}
			path := filepath.Join(logs, []string{"stdout.log", "stdout.log.1"}[i])
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var st syscall.Stat_t
			if err := syscall.Lstat(path, &st); err != nil {
				t.Fatal(err)
			}
			inodes[i] = st.Ino
		}
		var marks strings.Builder
		for _, m := range c.marks {
			fmt.Fprintln(&marks, inodes[m[0]], m[1], m[2])
		}
		if err := os.WriteFile(filepath.Join(logs, "stdout.log.times"), []byte(marks.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		w := writer(t, filepath.Join(t.TempDir(), "history"), "r1")
		if err := w.copyLog(t.Context(), "worker-0", "stdout", filepath.Join(logs, "stdout.log"), day); err != nil {
			t.Fatal(err)
		}
		packed, err := os.Open(filepath.Join(w.s.top, w.e.path(), "worker-0", "stdout.log.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := got.ReadFrom(z); err != nil {
			t.Fatal(err)
		}
		if err := packed.Close(); err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got.String(), c.want)
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	w := writer(t, dir, "r1")
	put(t, w, 2)
	app := appdef.App{Name: "hello", Components: []appdef.Component{{
		Name: "worker", Instances: 2, Config: map[string]string{"PASSWORD": "swordfish"},
	}}}
	text, err := appdef.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Conclude(t.Context(), RunOf(end("r1"), Context{Name: "hello", User: "ann", Now: day.Add(time.Hour)}), text, hide); err != nil {
		t.Fatal(err)
	}
	s := opened(t, dir)
	k, err := s.Load(t.Context(), "d1", "")
	if err != nil {
		t.Fatal(err)
	}
	var events, log bytes.Buffer
	if err := errors.Join(k.Events(t.Context(), "worker-0", 2, &events), k.Log(t.Context(), "worker-0", "stdout", &log)); err != nil {
		t.Error(err)
	}
	if k.Outcome != "failed" || k.User != "ann" || len(k.Members) != 2 || k.Members[1].Record.Attempt != 2 ||
		!slices.Equal(k.Lost, []string{"worker-1"}) || k.Def.Components[0].Name != "worker" || k.States["worker-0"].Generation != 2 {
		t.Errorf("got %+v", k)
	}
	if log.String() != "one\ntwo\n" || events.String() != "at\":\"2026-01-02T03:04:05Z\"}\n" {
		t.Errorf("got log %q, events %q", log.String(), events.String())
	}
	used, err := k.Samples(t.Context(), 5)
	if err != nil || len(used) != 1 || used[0].Instance != "worker-0" || !slices.Equal(used[0].At, []int64{10}) {
		t.Errorf("got samples %+v, %v", used, err)
	}
	if err := k.Log(t.Context(), "worker-0", "stderr", &log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v of a log that was not kept", err)
	}
	// Complete or absent, for its user alone, without secrets.
	info, err := os.Stat(filepath.Join(dir, "d1"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	// A folder that was there keeps the mode that somebody gave it.
	if err := os.Chmod(filepath.Join(dir, "d1"), 0o755); err != nil {
		t.Fatal(err)
	}
	writer(t, dir, "r2")
	if info, err := os.Stat(filepath.Join(dir, "d1")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	var names []string
	err = filepath.WalkDir(filepath.Join(dir, "d1"), func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		names = append(names, strings.TrimPrefix(at, dir))
		text, err := os.ReadFile(at)
		if bytes.Contains(text, []byte("swordfish")) || bytes.Contains(text, []byte("token-of-the-run")) {
			t.Errorf("%s has a secret", at)
		}
		return err
	})
	want := []string{
		"/d1/r1/app.json", "/d1/r1/run.json", "/d1/r1/worker-0/events.jsonl", "/d1/r1/worker-0/exit.json",
		"/d1/r1/worker-0/plan.json", "/d1/r1/worker-0/samples.json.gz", "/d1/r1/worker-0/state.json", "/d1/r1/worker-0/stdout.log.gz",
	}
	if diff := cmp.Diff(want, names); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Without the conductor's word a run is known by its instances; a later life's files and a verdict stay.
func TestWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	w := writer(t, dir, "r1")
	put(t, w, 3)
	put(t, w, 2)
	k, err := opened(t, dir).Load(t.Context(), "d1", "r1")
	if err != nil || k.States["worker-0"].Generation != 3 || k.Verdict == nil || k.Outcome != "failed" {
		t.Errorf("got %+v, %v", k, err)
	}
	first := RunOf(end("r1"), Context{Now: day})
	interrupted := end("r1")
	interrupted.Verdict = nil
	if err := errors.Join(w.Conclude(t.Context(), first, []byte("{}"), hide),
		w.Conclude(t.Context(), RunOf(interrupted, Context{Now: day.Add(time.Hour)}), []byte("{}"), hide)); err != nil {
		t.Fatal(err)
	}
	if runs, _, _, err := opened(t, dir).List(t.Context()); err != nil || len(runs) != 1 || runs[0].Outcome != "failed" || runs[0].Members != nil {
		t.Errorf("got %+v, %v", runs, err)
	}
	for app, run := range map[string]string{"d1": "r2", "d2": ""} {
		if _, err := opened(t, dir).Load(t.Context(), app, run); !errors.Is(err, registry.ErrNoApp) {
			t.Errorf("%s %s: got %v", app, run, err)
		}
	}
}

// unmarked is a store that takes no new file of some name, or gives no list of its folders.
type unmarked struct {
	store.Store

	name   string
	unread error
}

func (u unmarked) Create(ctx context.Context, at string) (io.WriteCloser, error) {
	if strings.HasPrefix(path.Base(at), u.name) {
		return nil, fs.ErrPermission
	}
	return u.Store.Create(ctx, at)
}

func (u unmarked) List(ctx context.Context, at string) ([]store.Info, error) {
	if u.unread != nil {
		return nil, u.unread
	}
	return u.Store.List(ctx, at)
}

// A sweep that cannot be marked removes old runs nevertheless, and says another thing than one that removes none.
func TestSweepTells(t *testing.T) {
	dir := t.TempDir()
	put(t, writer(t, dir, "r1"), 1)
	w := writer(t, dir, "r2")
	inner := w.s.in
	w.s.in = unmarked{Store: inner, name: sweptFile}
	gone, err := w.Sweep(t.Context(), Bound{Bytes: 1}, time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), "old runs were removed, and each run's end does so again") || len(gone) != 1 {
		t.Errorf("without a mark: got %v, %v", gone, err)
	}
	w.s.in = unmarked{Store: inner, name: "none", unread: errors.New("no list")}
	gone, err = w.Sweep(t.Context(), Bound{Bytes: 1}, time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), "old runs were not removed: ") || len(gone) != 0 {
		t.Errorf("without a list: got %v, %v", gone, err)
	}
}

// A folder that has other things too loses none of them.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "thesis", "chapters")
	if err := errors.Join(os.MkdirAll(other, 0o755), os.WriteFile(filepath.Join(other, "one.tex"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"r1", "r2", "r3"} {
		put(t, writer(t, dir, run), 1)
	}
	old := day.AddDate(-1, 0, 0)
	for _, at := range []string{other, filepath.Join(dir, "d1", "r1"), filepath.Join(dir, "d1", "r3")} {
		if err := os.Chtimes(at, old, old); err != nil {
			t.Fatal(err)
		}
	}
	w, bound := writer(t, dir, "r3"), Bound{Age: 30 * 24 * time.Hour}
	gone, err := w.Sweep(t.Context(), bound, time.Now())
	if err != nil || len(gone) != 1 || gone[0].Run != "r1" {
		t.Errorf("got %v, %v", gone, err)
	}
	if gone, err := w.Sweep(t.Context(), Bound{Bytes: 1}, time.Now()); err != nil || gone != nil {
		t.Errorf("a second time within an hour: got %v, %v", gone, err)
	}
	// A sweep that has no time left does not keep the next one waiting.
	if err := os.Remove(filepath.Join(dir, sweptFile+fmt.Sprint(os.Geteuid()))); err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if gone, err := w.Sweep(late, Bound{Bytes: 1}, time.Now()); err != nil || gone != nil {
		t.Errorf("without time: got %v, %v", gone, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, sweptFile+"*")); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v", left, err)
	}
	over, _, err := w.s.Over(t.Context(), Bound{Bytes: 1}, Entry{}, time.Now())
	if err != nil || len(over) != 2 {
		t.Fatalf("got %v, %v", over, err)
	}
	for range 2 { // by two at once
		if err := w.s.Remove(t.Context(), over[0]); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(other, "one.tex")); err != nil {
		t.Error(err)
	}
}

// What others put into a store that all may write to hides nothing, is named, and leads nowhere.
func TestOddThings(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, run := range []string{"good", "pipe", "link", "garbage", "log", "state", "exit"} {
		w := writer(t, dir, run)
		put(t, w, 1)
		if err := w.Conclude(t.Context(), RunOf(end(run), Context{Now: day}), []byte("{}"), hide); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(outside, "secret.gz")
	in := func(names ...string) string { return filepath.Join(append([]string{dir, "d1"}, names...)...) }
	var failed []error
	replace := func(at, by string) { failed = append(failed, os.Remove(at), os.Symlink(by, at)) }
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("secret"))
	failed = append(failed, err, z.Close(), os.WriteFile(secret, packed.Bytes(), 0o600),
		os.Symlink("loop", filepath.Join(dir, "loop")), os.Symlink("nothing", filepath.Join(dir, "dangling")),
		os.Symlink(outside, filepath.Join(dir, "out")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Symlink("good", in("r9")), os.Remove(in("pipe", "run.json")), syscall.Mkfifo(in("pipe", "run.json"), 0o600),
		os.WriteFile(in("garbage", "run.json"), []byte("garbage"), 0o600))
	replace(in("link", "run.json"), secret)
	replace(in("log", "worker-0", "stdout.log.gz"), secret)
	replace(in("log", "worker-0", "events.jsonl"), "../../good/worker-0/events.jsonl")
	replace(in("state", "worker-0", "state.json"), "state.json")
	failed = append(failed, os.RemoveAll(in("exit", "worker-0")), os.Symlink("../good/worker-0", in("exit", "worker-0")))
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	s := opened(t, dir)
	runs, entries, odd, err := s.List(t.Context())
	var names []string
	for _, r := range runs {
		names = append(names, r.Run)
	}
	slices.Sort(names)
	if want := []string{"exit", "good", "log", "state"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %v, %v", names, err)
	}
	said := fmt.Sprint(odd)
	for _, want := range []string{
		"/loop: loop is a link, want a file or a folder", "/dangling: dangling is a link", "/out: out is a link",
		"/fifo: fifo is a device, pipe or socket", "/d1/r9: r9 is a link", "/pipe/run.json", "/link/run.json", "garbage/run.json: invalid character",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("got %s, want %s", said, want)
		}
	}
	if len(odd) != 8 {
		t.Errorf("got %d: %v", len(odd), odd)
	}
	for run, instances := range map[string]int{"state": 0, "exit": 0, "log": 1, "pipe": 1} {
		k, err := s.Load(t.Context(), "d1", run)
		if err != nil || len(k.States) != instances || (len(k.Odd) == 0) != (run == "log") {
			t.Errorf("%s: got %+v, %v", run, k, err)
		}
	}
	k, err := s.Load(t.Context(), "d1", "log")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, err := range []error{k.Log(t.Context(), "worker-0", "stdout", &text), k.Events(t.Context(), "worker-0", 0, &text)} {
		if err == nil || !strings.Contains(err.Error(), "is a link") || text.Len() > 0 {
			t.Errorf("got %q, %v", text.String(), err)
		}
	}
	w := writer(t, dir, "good")
	gone, err := w.Sweep(t.Context(), Bound{Bytes: 1}, time.Now())
	if err != nil || len(gone) != len(entries)-1 {
		t.Errorf("got %v, %v", gone, err)
	}
	for _, at := range []string{secret, in("good", "run.json"), in("good", "worker-0", "state.json")} {
		if _, err := os.Stat(at); err != nil {
			t.Error(err)
		}
	}
}

// A name that becomes a link between two looks leads nowhere either.
func TestBelowFollowsNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), os.MkdirAll(filepath.Join(outside, "b"), 0o700),
		os.WriteFile(filepath.Join(outside, "b", "f"), nil, 0o600), os.Symlink("a", filepath.Join(dir, "inner")), os.Symlink(outside, filepath.Join(dir, "outer"))); err != nil {
		t.Fatal(err)
	}
	b := &below{name: dir}
	if err := b.reopen(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"inner/b/f", "outer/b/f", "../" + filepath.Base(outside) + "/b/f"} {
		at := dir + "/" + name
		_, read := b.OpenFile(at, os.O_RDONLY, 0)
		_, stat := b.Stat(at)
		for what, err := range map[string]error{
			"read": read, "stat": stat, "make": b.MkdirAll(at, 0o700), "remove": b.RemoveAll(at), "rename": b.Rename(at, at+"2"),
		} {
			if err == nil {
				t.Errorf("%s %s: it is done", what, name)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "b", "f")); err != nil {
		t.Error(err)
	}
	// Another folder that has the name by now is the store.
	if err := errors.Join(os.RemoveAll(dir), b.MkdirAll(filepath.Join(dir, "c"), 0o700)); err == nil {
		t.Error("a folder is made in one that is gone")
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), b.reopen(), b.MkdirAll(filepath.Join(dir, "c", "d"), 0o700)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "c", "d")); err != nil {
		t.Error(err)
	}
}

// In a folder that all may write to, another user's link or folder is not written into.
func TestAnotherUsersFolder(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "d1")); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(t, dir).Writer(t.Context(), "d1", "r1", false); err == nil || !strings.Contains(err.Error(), "d1 is a link") {
		t.Errorf("a link: got %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d2"), 0o777), os.Chown(filepath.Join(dir, "d2"), 4321, -1)); err != nil {
		t.Fatal(err)
	}
	_, err := opened(t, dir).Writer(t.Context(), "d2", "r1", false)
	if err == nil || !strings.Contains(err.Error(), "folder d2 belongs to uid 4321, not to uid 0: give the app another name") {
		t.Errorf("another user's folder: got %v", err)
	}
}
