package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

func newStore(t *testing.T) Store {
	t.Helper()
	store, top, err := file.Open(t.Context(), t.TempDir())
	must(t, err)
	return Store{store, top + "/app"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// work is a checkpoint folder with a framework's own files.
func work(t *testing.T, dir string) *os.Root {
	t.Helper()
	at := t.TempDir()
	if dir != "" {
		must(t, os.CopyFS(at, os.DirFS(filepath.Join("format/testdata", dir))))
	}
	root, err := os.OpenRoot(at)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// mine is a folder with the rights of the test's own user.
func mine(root *os.Root) files.UserFolder { return files.As(nil).In(root) }

func send(v Store) sender {
	return func(ctx context.Context, uploads []store.Upload) error {
		for _, p := range uploads {
			text, err := readSmall(p.From.(files.UserFolder), p.Name)
			if err == nil {
				err = v.write(ctx, p.To, text)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func receive(v Store) receiver {
	return func(ctx context.Context, to transfer.Folder, all []transfer.Copy) error {
		for _, w := range all {
			text, err := v.read(ctx, w.From.Path, 1<<30)
			if err == nil {
				err = to.MkdirAll(filepath.Dir(w.To), 0o755)
			}
			if err == nil {
				err = writeNew(to.(files.UserFolder), w.To, string(text))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func manifestOf(gen int, inc string) Manifest {
	return Manifest{
		App: "app", Run: "1", Instance: "worker-0", Inc: strings.Repeat(inc, 8), Generation: gen, Attempt: 1, Framework: "tensorflow", Place: ".", Shared: true,
		Founded: time.Unix(1000, 0).UTC(), Saved: time.Unix(2000, 0).UTC(),
	}
}

// stored puts the newest checkpoint of a folder into the store.
func stored(t *testing.T, v Store, m Manifest, from *os.Root) StoredCopy {
	t.Helper()
	found, err := format.Rule{Framework: m.Framework}.Look(files.Tree(from))
	must(t, err)
	c, ok := found.Newest()
	if !ok {
		t.Fatal("nothing whole", found.Torn)
	}
	k, _, err := v.Put(t.Context(), m, c, mine(from), send(v))
	must(t, err)
	return k
}

// tree are the files below a folder with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	}))
	return all
}

func TestWhatIsStoredComesBack(t *testing.T) {
	for _, c := range []struct{ dir, framework string }{
		{"tensorflow/v2", "tensorflow"},
		{"torch/sharded", "pytorch"},
		{"torch/old", "pytorch"},
		{"mxnet/1", "mxnet"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			v, from, to := newStore(t), work(t, c.dir), work(t, "")
			m := manifestOf(3, "a")
			m.Framework = c.framework
			k := stored(t, v, m, from)
			m, sum, err := v.Read(t.Context(), k)
			must(t, err)
			if len(sum) != 64 || m.Generation != 3 || m.Step == 0 {
				t.Errorf("got %+v, %s", m, sum)
			}
			must(t, v.Bring(t.Context(), m, mine(to), "me", receive(v)))
			if diff := cmp.Diff(tree(t, from.Name()), tree(t, to.Name())); diff != "" {
				t.Errorf("(-stored +brought):\n%s", diff)
			}
			must(t, v.Bring(t.Context(), m, mine(to), "me", receive(v))) // over what is there
			if found, err := (format.Rule{Framework: c.framework}).Look(files.Tree(to)); err != nil || len(found.Whole) != 1 || found.Whole[0].Path != m.Path {
				t.Errorf("got %+v, %v", found, err)
			}
			again := stored(t, v, m, from)
			if all, err := v.List(t.Context(), "worker-0"); err != nil || again.Step != k.Step || len(all) != 1 {
				t.Errorf("stored again: %v, %v", all, err)
			}
			if _, err := os.Stat(v.Top + "/worker-0/_temporary"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("_temporary is left: %v", err)
			}
		})
	}
}

// A checkpoint in a store of which anything is missing, cut or changed is torn, and nothing of it is laid out.
func TestTornInTheStore(t *testing.T) {
	v, from := newStore(t), work(t, "tensorflow/v2")
	k := stored(t, v, manifestOf(1, "a"), from)
	good := tree(t, v.Folder(k))
	for name, text := range good {
		for what, bad := range map[string]string{"gone": "", "cut": text[:len(text)/2], "longer": text + "x", "changed": string(text[0]^1) + text[1:]} {
			t.Run(name+" "+what, func(t *testing.T) {
				path := filepath.Join(v.Folder(k), name)
				if what == "gone" {
					must(t, os.Remove(path))
				} else {
					must(t, os.WriteFile(path, []byte(bad), 0o600))
				}
				defer func() { must(t, os.WriteFile(path, []byte(text), 0o600)) }()
				to := work(t, "")
				m, _, err := v.Read(t.Context(), k)
				if err == nil {
					err = v.Bring(t.Context(), m, mine(to), "me", receive(v))
				}
				if !errors.Is(err, errTorn) {
					t.Errorf("got %v, want it torn", err)
				}
				if got := tree(t, to.Name()); len(got) != 0 {
					t.Errorf("laid out: %v", got)
				}
			})
		}
	}
}

// What one host alone has to do with is no word on a copy: a store that it does not see, a folder that its process
// takes away, a disk that changes bytes.
func TestTornHereAlone(t *testing.T) {
	v, from := newStore(t), work(t, "tensorflow/v2")
	k := stored(t, v, manifestOf(1, "a"), from)
	m, _, err := v.Read(t.Context(), k)
	must(t, err)
	other := newStore(t)
	if _, _, err := other.Read(t.Context(), k); !errors.Is(err, errAbsent) || errors.Is(err, errTorn) {
		t.Errorf("of another store: got %v, want it absent", err)
	}
	to := work(t, "")
	for name, after := range map[string]func() error{
		"folder taken away": func() error { return to.RemoveAll(".muster-bring-me") },
		"bytes changed":     func() error { return to.WriteFile(".muster-bring-me/"+m.Files[0].Path, []byte("x"), 0o600) },
	} {
		err := v.Bring(t.Context(), m, mine(to), "me", func(ctx context.Context, room transfer.Folder, all []transfer.Copy) error {
			return errors.Join(receive(v)(ctx, room, all), after())
		})
		if err == nil || errors.Is(err, errTorn) || errors.Is(err, errAbsent) {
			t.Errorf("%s: got %v, want an error of this host", name, err)
		}
	}
	must(t, v.Bring(t.Context(), m, mine(to), "me", receive(v)))
}

func TestStoringIsCalledOffOrFails(t *testing.T) {
	v, from := newStore(t), work(t, "tensorflow/v2")
	found, err := format.Rule{Framework: "tensorflow"}.Look(files.Tree(from))
	must(t, err)
	c, _ := found.Newest()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	put := func(ctx context.Context, send sender) error {
		_, _, err := v.Put(ctx, manifestOf(1, "a"), c, mine(from), send)
		return err
	}
	for name, err := range map[string]error{
		"called off": put(ctx, send(v)),
		"fails": put(t.Context(), func(ctx context.Context, p []store.Upload) error {
			return errors.Join(send(v)(ctx, p[:1]), io.ErrClosedPipe)
		}),
		"changes": put(t.Context(), func(ctx context.Context, p []store.Upload) error {
			return errors.Join(send(v)(ctx, p), from.WriteFile(c.Files[0].Name, []byte("another"), 0o600))
		}),
		"changed before": put(t.Context(), send(v)),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
		if all, err := v.List(t.Context(), "worker-0"); err != nil || len(all) > 0 {
			t.Errorf("%s: got %v, %v, want nothing stored", name, all, err)
		}
	}
	must(t, os.MkdirAll(v.Top, 0o755))
	for name := range tree(t, v.Top) {
		t.Errorf("left: %s", name)
	}
}

// Who stores under an older generation, or beside another agent, replaces nothing.
func TestNobodyReplacesWhatAnotherStored(t *testing.T) {
	v, from := newStore(t), work(t, "tensorflow/v2")
	stored(t, v, manifestOf(2, "b"), from)
	before := tree(t, v.Top)
	stored(t, v, manifestOf(1, "a"), from)
	stored(t, v, manifestOf(2, "c"), from)
	after := tree(t, v.Top)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s is another one now", name)
		}
	}
	all, err := v.List(t.Context(), "worker-0")
	must(t, err)
	want := []string{"step-7-g1-aaaaaaaa", "step-7-g2-bbbbbbbb", "step-7-g2-cccccccc"}
	var names []string
	for _, k := range all {
		names = append(names, k.Name)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, v.Remove(t.Context(), all[0]))
	must(t, v.Remove(t.Context(), all[0]))
	if got, err := v.List(t.Context(), "worker-0"); err != nil || len(got) != 2 {
		t.Errorf("after the removal: %v, %v", got, err)
	}
}

// A program that saves over one name, or comes back to a step, has stored what it saved last.
func TestTheSameStepAgain(t *testing.T) {
	v, from := newStore(t), work(t, "")
	for _, text := range []string{"epoch one", "epoch two"} {
		must(t, from.WriteFile("last-2.bin", []byte(text), 0o600))
		found, err := format.Rule{Pattern: "last-*"}.Look(files.Tree(from))
		must(t, err)
		k, _, err := v.Put(t.Context(), manifestOf(1, "a"), found.Whole[0], mine(from), send(v))
		must(t, err)
		if got, err := os.ReadFile(v.Folder(k) + "/files/last-2.bin"); err != nil || string(got) != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
		m, _, err := v.Read(t.Context(), k)
		must(t, err)
		if !same(t.Context(), mine(from), m) {
			t.Error("what was stored is not what is here")
		}
		must(t, os.Remove(v.Folder(k)+"/manifest.json.sha256")) // torn: it is stored anew as well
	}
}

// What a process puts where its framework's file belongs is not waited for.
func TestStateThatIsNoFile(t *testing.T) {
	root := work(t, "tensorflow/v2")
	for _, name := range []string{"checkpoint", ".muster-checkpoint"} {
		must(t, syscall.Mkfifo(filepath.Join(root.Name(), name), 0o600))
	}
	found, err := format.Rule{Framework: "tensorflow"}.Look(files.Tree(root))
	must(t, err)
	must(t, writeState(mine(root), "tensorflow", found, found.Whole[0]))
	if text, err := readSmall(mine(root), "checkpoint"); err != nil || !strings.Contains(string(text), "model.ckpt-7") {
		t.Errorf("got %q, %v", text, err)
	}
}

// What nobody names any more goes first, whenever it was stored; what is named and of the gang's step or newer stays,
// also that of an earlier life of the registry, whatever its generation.
func TestKeep(t *testing.T) {
	type one struct {
		life  int64
		gen   int
		steps []int
	}
	for _, c := range []struct {
		name  string
		has   []one
		n     int
		least int64
		gone  []string // what no key names
		want  []string
	}{
		{"all there are", []one{{1, 7, []int{9}}, {2, 1, []int{1, 2}}}, 3, 100, nil, []string{"9-g7", "1-g1", "2-g1"}},
		{"the newest two", []one{{1, 7, []int{9}}, {2, 1, []int{1, 2, 3}}}, 2, 100, nil, []string{"2-g1", "3-g1"}},
		{"the newest one, and where the gang is", []one{{2, 1, []int{1, 2, 3}}}, 1, 2, nil, []string{"2-g1", "3-g1"}},
		{"where the gang is, of an earlier life", []one{{1, 7, []int{10, 20, 30}}, {2, 1, []int{40}}}, 1, 20, nil, []string{"20-g7", "30-g7", "40-g1"}},
		{
			"a branch that was given up",
			[]one{{1, 1, []int{10, 20, 30, 40, 50}}, {1, 2, []int{22, 24}}},
			3, 24,
			[]string{"30-g1", "40-g1", "50-g1"},
			[]string{"20-g1", "22-g2", "24-g2"},
		},
		{"nothing in common: what is named", []one{{1, 1, []int{10, 20, 30, 40}}}, 1, 0, []string{"10-g1", "20-g1"}, []string{"30-g1", "40-g1"}},
		{"fewer are named than shall stay", []one{{1, 1, []int{10, 20, 30}}}, 2, 100, []string{"10-g1", "20-g1"}, []string{"20-g1", "30-g1"}},
	} {
		v := newStore(t)
		for _, s := range c.has {
			for _, step := range s.steps {
				from := work(t, "")
				must(t, from.WriteFile(fmt.Sprintf("c-%d", step), []byte("x"), 0o600))
				m := manifestOf(s.gen, "0")
				m.Founded = time.Unix(s.life, 0).UTC()
				found, err := format.Rule{Pattern: "c-*"}.Look(files.Tree(from))
				must(t, err)
				_, _, err = v.Put(t.Context(), m, found.Whole[0], mine(from), send(v))
				must(t, err)
			}
		}
		short := func(k StoredCopy) string { return fmt.Sprintf("%d-g%d", k.Step, k.Generation) }
		must(t, v.Keep(t.Context(), "worker-0", c.n, c.least, func(k StoredCopy) bool { return !slices.Contains(c.gone, short(k)) }, func(StoredCopy) error { return nil }))
		all, err := v.List(t.Context(), "worker-0")
		must(t, err)
		var names []string
		for _, k := range all {
			names = append(names, short(k))
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), slices.Sorted(slices.Values(names))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestNamesInAStore(t *testing.T) {
	if k, ok := copyAt("hdfs://n/ck/app/worker-0/step-7-g2-aaaaaaaa"); !ok || k != (StoredCopy{"worker-0", "step-7-g2-aaaaaaaa", 7, 2, "aaaaaaaa"}) {
		t.Errorf("got %+v, %v", k, ok)
	}
	for _, bad := range []string{"", "/x", "a/step-7-g2-aaaaaaaa", "worker-0/step-07-g2-aaaaaaaa", "worker-0/step-7-g2-AAAAAAAA", "worker-0/step-7-g2", "../step-1-g1-aaaaaaaa", "worker-0/../step-1-g1-aaaaaaaa"} {
		if k, ok := copyAt(bad); ok {
			t.Errorf("%s: got %+v", bad, k)
		}
	}
}

func TestQuarantine(t *testing.T) {
	root := work(t, "tensorflow/v2")
	for _, name := range []string{"model.ckpt-9.index", "model.ckpt-9.data-00000-of-00001", "model.ckpt-12.index"} {
		must(t, root.WriteFile(name, []byte("torn"), 0o600))
	}
	for from, to := range map[string]string{"index": "model.ckpt-30.index", "data-00000-of-00001": "model.ckpt-30.data-00000-of-00001"} {
		text, err := root.ReadFile("model.ckpt-7." + from)
		must(t, err)
		must(t, root.WriteFile(to, text, 0o600))
	}
	must(t, root.WriteFile("checkpoint", []byte("model_checkpoint_path: \"model.ckpt-30\"\nall_model_checkpoint_timestamps: 1\n"), 0o600))
	rule := format.Rule{Framework: "tensorflow"}
	found, err := rule.Look(files.Tree(root))
	must(t, err)
	moved, err := quarantine(mine(root), found, 7, "g4")
	must(t, err)
	if diff := cmp.Diff([]string{"model.ckpt-30", "model.ckpt-9", "model.ckpt-12"}, moved); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found, err = rule.Look(files.Tree(root))
	must(t, err)
	newest, ok := found.Newest()
	if !ok || len(found.Whole) != 1 || len(found.Torn) != 0 || newest.Step != 7 {
		t.Fatalf("got %+v", found)
	}
	must(t, writeState(mine(root), "tensorflow", found, newest))
	text, err := root.ReadFile("checkpoint")
	must(t, err)
	if want := "model_checkpoint_path: \"model.ckpt-7\"\nall_model_checkpoint_paths: \"model.ckpt-7\"\n"; string(text) != want {
		t.Errorf("got %s want %s", text, want)
	}
	if got := slices.Sorted(maps.Keys(tree(t, filepath.Join(root.Name(), ".muster-set-aside-g4")))); len(got) != 5 {
		t.Errorf("set aside: %v", got)
	}
	folders := work(t, "torch/sharded")
	found, err = format.Rule{Framework: "pytorch"}.Look(files.Tree(folders))
	must(t, err)
	if _, err := quarantine(mine(folders), found, 3, "g1"); err != nil {
		t.Fatal(err)
	}
	if _, err := folders.Stat(".muster-set-aside-g1/step-30/.metadata"); err != nil {
		t.Error(err)
	}
}

// Generations count anew with each registry: what was set aside in an earlier life's stays as it is.
func TestQuarantineReplacesNothing(t *testing.T) {
	root := work(t, "")
	for life := range 3 {
		must(t, root.MkdirAll("step-4", 0o755))
		must(t, root.WriteFile("step-4/part", fmt.Append(nil, "of ", life), 0o600))
		found, err := format.Rule{Pattern: "step-*"}.Look(files.Tree(root))
		must(t, err)
		for range 2 { // nothing is left for the second
			if _, err := quarantine(mine(root), found, 3, "g2"); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string]string{
		".muster-set-aside-g2/step-4/part": "of 0", ".muster-set-aside-g2.1/step-4/part": "of 1", ".muster-set-aside-g2.2/step-4/part": "of 2",
	}
	if diff := cmp.Diff(want, tree(t, root.Name())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStanding(t *testing.T) {
	at := func(life, gen int, step int64) Manifest {
		m := manifestOf(gen, "a")
		m.Founded, m.Step = time.Unix(int64(life), 0), step
		return m
	}
	for _, c := range []struct {
		name string
		all  []Manifest
		want []int64
	}{
		{"nothing", nil, nil},
		{"one generation", []Manifest{at(1, 1, 30), at(1, 1, 10)}, []int64{10, 30}},
		{"a branch that was given up", []Manifest{at(1, 3, 400), at(1, 3, 500), at(1, 3, 900), at(1, 5, 600), at(1, 5, 700)}, []int64{400, 500, 600, 700}},
		{"the same step again", []Manifest{at(1, 1, 10), at(1, 2, 10)}, []int64{10}},
		{"a registry that began anew", []Manifest{at(1, 7, 900), at(2, 1, 1000)}, []int64{900, 1000}},
		{ // the first three are one rank's, the next two another's; the last is of a later life, which has given the first 30 up
			"several ranks",
			[]Manifest{at(1, 1, 10), at(1, 1, 20), at(1, 1, 30), at(1, 1, 10), at(1, 1, 20), at(2, 1, 30)},
			[]int64{10, 10, 20, 20, 30},
		},
		{"and went back", []Manifest{at(1, 7, 900), at(2, 1, 800)}, []int64{800}},
	} {
		var got []int64
		for _, m := range standing(c.all) {
			got = append(got, m.Step)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Laws of Standing: its steps only rise, the newest generation stays whole, and whatever the order of the input.
func TestStandingLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all []Manifest
		for range r.IntN(12) {
			m := manifestOf(r.IntN(4), "a")
			m.Founded, m.Step = time.Unix(int64(r.IntN(2)), 0), int64(r.IntN(6))
			m.Inc = fmt.Sprintf("%08d", len(all))
			all = append(all, m)
		}
		got := standing(all)
		if !slices.IsSortedFunc(got, func(a, b Manifest) int { return int(a.Step - b.Step) }) || !slices.IsSortedFunc(got, Manifest.before) {
			t.Fatalf("%v: not in order: %v", all, got)
		}
		if len(all) > 0 {
			newest := slices.MaxFunc(all, Manifest.before)
			if last := got[len(got)-1]; last.Inc != newest.Inc {
				t.Fatalf("got %v as the newest, want %v", last, newest)
			}
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if diff := cmp.Diff(got, standing(all)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func example() Manifest {
	m := manifestOf(3, "a")
	m.Version, m.Step, m.Path = manifestVersion, 7, "model.ckpt-7"
	m.Files = []manifestFile{{"a/b", 1, strings.Repeat("0", 64)}, {"a/c", 2, strings.Repeat("1", 64)}}
	return m
}

func TestManifestsAreStrict(t *testing.T) {
	text, err := example().Encode()
	must(t, err)
	got, err := parseManifest(text)
	if diff := cmp.Diff(example(), got); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	for name, spoil := range map[string]func(*Manifest){
		"version":      func(m *Manifest) { m.Version = 2 },
		"app":          func(m *Manifest) { m.App = "../x" },
		"run":          func(m *Manifest) { m.Run = "" },
		"instance":     func(m *Manifest) { m.Instance = "a/b-0" },
		"dots":         func(m *Manifest) { m.Instance = ".." },
		"incarnation":  func(m *Manifest) { m.Inc = "abc" },
		"generation":   func(m *Manifest) { m.Generation = -1 },
		"attempt":      func(m *Manifest) { m.Attempt = -1 },
		"step":         func(m *Manifest) { m.Step = -1 },
		"framework":    func(m *Manifest) { m.Framework = "a\nb" },
		"place":        func(m *Manifest) { m.Place = ".." },
		"path":         func(m *Manifest) { m.Path = "/etc/passwd" },
		"no files":     func(m *Manifest) { m.Files = nil },
		"absolute":     func(m *Manifest) { m.Files[0].Path = "/a" },
		"up":           func(m *Manifest) { m.Files[0].Path = "../a" },
		"up within":    func(m *Manifest) { m.Files[0].Path = "a/../../b" },
		"dot":          func(m *Manifest) { m.Files[0].Path = "." },
		"blackslash":   func(m *Manifest) { m.Files[0].Path = `..\a` },
		"zero byte":    func(m *Manifest) { m.Files[0].Path = "a\x00" },
		"ours":         func(m *Manifest) { m.Files[0].Path = "a/.muster-bring-x/b" },
		"long name":    func(m *Manifest) { m.Files[0].Path = strings.Repeat("a", 256) },
		"long path":    func(m *Manifest) { m.Files[0].Path = strings.Repeat("a/", 2100) + "a" },
		"twice":        func(m *Manifest) { m.Files[0].Path = m.Files[1].Path },
		"file, folder": func(m *Manifest) { m.Files[0].Path = "a" },
		"size":         func(m *Manifest) { m.Files[0].Size = -1 },
		"huge":         func(m *Manifest) { m.Files[0].Size = 1 << 60 },
		"digest":       func(m *Manifest) { m.Files[0].SHA256 = strings.Repeat("A", 64) },
	} {
		m := example()
		spoil(&m)
		if _, err := m.Encode(); err == nil {
			t.Errorf("%s: is stored", name)
		}
		raw, err := json.Marshal(m)
		must(t, err)
		if got, err := parseManifest(raw); err == nil {
			t.Errorf("%s: got %+v, want it refused", name, got)
		}
	}
	for _, bad := range []string{"", "{}", "null", "[]", string(text) + "x", string(text[:len(text)-3]), "\xff" + string(text)} {
		if _, err := parseManifest([]byte(bad)); err == nil {
			t.Errorf("%.40q: want it refused", bad)
		}
	}
	if _, err := parseManifest([]byte(strings.Replace(string(text), `"version"`, `"later": [1], "version"`, 1))); err != nil {
		t.Errorf("a field of a newer one: %v", err)
	}
}

// Whatever a manifest says, what it parses to is stored again as the same, and nothing of it leaves a folder.
func FuzzManifest(f *testing.F) {
	text, err := example().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(strings.Replace(string(text), "a/b", "../b", 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("read, and not written: %v", err)
		}
		if back, err := parseManifest(again); err != nil || !cmp.Equal(m, back) {
			t.Fatalf("%v: got %+v, want %+v", err, back, m)
		}
		top := "/top/folder"
		for _, file := range m.Files {
			for _, name := range []string{file.Path, m.Path, m.Place} {
				if at := filepath.Join(top, filepath.FromSlash(name)); at != top && !strings.HasPrefix(at, top+"/") {
					t.Fatalf("%q leaves its folder", name)
				}
			}
		}
		if k, ok := parseCopy(m.Instance, m.Copy().Name); ok && k != m.Copy() {
			t.Fatalf("got %+v, want %+v", k, m.Copy())
		}
	})
}
