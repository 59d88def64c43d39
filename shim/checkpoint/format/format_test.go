package format

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// golden is a folder that a framework wrote (testdata/make.py).
func golden(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	top := os.DirFS(path.Join("testdata", dir))
	err := fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(top, name)
		files[name] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", dir, err, len(files))
	}
	return files
}

type seen struct {
	Step int64
	Path string
}

func look(t *testing.T, r Rule, dir fs.FS) (whole []seen, torn []torn) {
	t.Helper()
	found, err := r.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Whole {
		whole = append(whole, seen{c.Step, c.Path})
	}
	return whole, found.Torn
}

// What the frameworks wrote is whole; cut anywhere, emptied, filled with zeros or without one of its files it is not.
func TestFrameworksOwnFiles(t *testing.T) {
	tests := []struct {
		dir       string
		framework string
		pattern   string
		want      seen
		files     []string // that belong to it
		optional  []string // without them it is whole
		until     string   // what is behind this may be missing; empty: all but line feeds counts
	}{
		{dir: "tensorflow/v2", framework: "tensorflow", want: seen{7, "model.ckpt-7"}, files: []string{"model.ckpt-7.data-00000-of-00001", "model.ckpt-7.index"}},
		{dir: "tensorflow/named", framework: "tensorflow", want: seen{7, "model.ckpt"}, files: []string{"model.ckpt.data-00000-of-00001", "model.ckpt.index"}},
		{dir: "tensorflow/object", framework: "tensorflow", want: seen{1, "ckpt-1"}, files: []string{"ckpt-1.data-00000-of-00001", "ckpt-1.index"}, optional: []string{"checkpoint"}},
		{dir: "tensorflow/counted", framework: "tensorflow", want: seen{40, "weights"}, files: []string{"weights.data-00000-of-00001", "weights.index"}},
		{dir: "tensorflow/v1", framework: "tensorflow", want: seen{7, "model.ckpt-7"}, files: []string{"model.ckpt-7"}},
		{dir: "torch/zip", framework: "pytorch", want: seen{9, "ckpt-9.pt"}, files: []string{"ckpt-9.pt"}},
		{dir: "torch/old", framework: "pytorch", want: seen{9, "ckpt-9.pt"}, files: []string{"ckpt-9.pt"}},
		{dir: "torch/zip", pattern: "ckpt-*.pt", want: seen{9, "ckpt-9.pt"}, files: []string{"ckpt-9.pt"}},
		{
			dir: "torch/sharded", framework: "pytorch", want: seen{30, "step-30"},
			files: []string{"step-30/.metadata", "step-30/__0_0.distcp", "step-30/__0_1.distcp", "step-30/__0_2.distcp"},
		},
		{
			dir: "torch/sharded", pattern: "step-*", want: seen{30, "step-30"},
			files: []string{"step-30/.metadata", "step-30/__0_0.distcp", "step-30/__0_1.distcp", "step-30/__0_2.distcp"},
		},
		{dir: "mxnet", framework: "mxnet", want: seen{3, "model-0003.params"}, files: []string{"model-0003.params", "model-symbol.json"}, optional: []string{"1/model-1-0005.params", "1/model-1-symbol.json"}},
		{dir: "mxnet/1", framework: "mxnet", want: seen{5, "model-1-0005.params"}, files: []string{"model-1-0005.params", "model-1-symbol.json"}},
		{dir: "mxnet/1", framework: "mxnet", pattern: "*.params", want: seen{5, "model-1-0005.params"}, files: []string{"model-1-0005.params"}, optional: []string{"model-1-symbol.json"}},
		{dir: "xgboost", framework: "xgboost", pattern: "*.json", want: seen{2, "model-2.json"}, files: []string{"model-2.json"}, optional: []string{"model-2.ubj"}},
		{dir: "xgboost", framework: "xgboost", pattern: "*.ubj", want: seen{2, "model-2.ubj"}, files: []string{"model-2.ubj"}, optional: []string{"model-2.json"}},
		{dir: "lightgbm", framework: "lightgbm", pattern: "*_2", want: seen{2, "model.txt.snapshot_iter_2"}, files: []string{"model.txt.snapshot_iter_2"}, optional: []string{"model-2.txt"}, until: "end of parameters\n"},
		{dir: "lightgbm", framework: "lightgbm", pattern: "*.txt", want: seen{2, "model-2.txt"}, files: []string{"model-2.txt"}, optional: []string{"model.txt.snapshot_iter_2"}, until: "end of parameters\n"},
	}
	for _, tt := range tests {
		t.Run(tt.dir+" "+tt.pattern, func(t *testing.T) {
			rule := Rule{Framework: tt.framework, Pattern: tt.pattern}
			files := golden(t, tt.dir)
			whole, torn := look(t, rule, files)
			if diff := cmp.Diff([]seen{tt.want}, whole); diff != "" || len(torn) > 0 {
				t.Fatalf("(-want +got):\n%s torn: %v", diff, torn)
			}
			found, err := rule.Look(files)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range found.Whole[0].Files {
				names = append(names, f.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(tt.files, names); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			for name, f := range files {
				if slices.Contains(tt.optional, name) {
					continue
				}
				refuses := func(what string, data []byte) {
					t.Helper()
					other := maps.Clone(files)
					other[name] = &fstest.MapFile{Data: data}
					if data == nil {
						delete(other, name)
					}
					if whole, _ := look(t, rule, other); len(whole) > 0 {
						t.Errorf("%s %s: still counts: %v", name, what, whole)
					}
				}
				refuses("is gone", nil)
				refuses("is empty", []byte{})
				if !strings.Contains(name, ".data-") && path.Ext(name) != ".distcp" { // of their bytes nothing is known but their number
					refuses("is zeros", make([]byte, len(f.Data)))
				}
				end := len(bytes.TrimRight(f.Data, "\n"))
				if tt.until != "" {
					end = bytes.Index(f.Data, []byte(tt.until)) + len(tt.until)
				}
				for n := 1; n < end; n += 1 + n%3 {
					refuses("is cut", f.Data[:n])
				}
			}
		})
	}
}

func TestChecksumsOfAnIndexAreChecked(t *testing.T) {
	for _, dir := range []string{"tensorflow/v2", "tensorflow/v1"} {
		files := golden(t, dir)
		for name, f := range files {
			if strings.Contains(name, ".data-") {
				continue
			}
			for i := range len(f.Data) - footerBytes {
				bad := maps.Clone(files)
				text := bytes.Clone(f.Data)
				text[i] ^= 0x20
				bad[name] = &fstest.MapFile{Data: text}
				// The block in between (of filters; it is empty) is never read: a change in it changes nothing.
				if whole, torn := look(t, Rule{Framework: "tensorflow"}, bad); len(whole) > 0 && i < 20 || len(whole)+len(torn) != 1 {
					t.Errorf("%s, byte %d: got %v, %v", name, i, whole, torn)
				}
			}
		}
	}
}

func TestLookTakesOnlyWholeCheckpoints(t *testing.T) {
	shards := func(prefix string, n int) fstest.MapFS { // of real ones: the index says how many
		dir := fstest.MapFS{}
		for name, f := range golden(t, "tensorflow/v2") {
			dir[strings.Replace(name, "model.ckpt-7", prefix, 1)] = f
		}
		if n == 0 {
			delete(dir, prefix+".data-00000-of-00001")
		}
		return dir
	}
	files := func(names ...string) fstest.MapFS {
		dir := fstest.MapFS{}
		for _, n := range names {
			text := []byte("x")
			if name, ok := strings.CutSuffix(n, " (empty)"); ok {
				n, text = name, nil
			}
			dir[n] = &fstest.MapFile{Data: text}
		}
		return dir
	}
	join := func(all ...fstest.MapFS) fstest.MapFS {
		dir := fstest.MapFS{}
		for _, one := range all {
			maps.Copy(dir, one)
		}
		return dir
	}
	tests := []struct {
		name string
		rule Rule
		dir  fstest.MapFS
		want []seen
		torn []string
	}{
		{name: "nothing", rule: Rule{Framework: "tensorflow"}, dir: files()},
		{name: "no rule for this framework", rule: Rule{Framework: "none"}, dir: files("ckpt-1.json")},
		{
			name: "a shard is missing in the newer", rule: Rule{Framework: "tensorflow"}, dir: join(shards("m-7", 1), shards("m-900", 0)),
			want: []seen{{7, "m-7"}}, torn: []string{"m-900: no m-900.data-00000-of-00001"},
		},
		{
			name: "another number of shards than the index has", rule: Rule{Framework: "tensorflow"},
			dir:  join(shards("m-7", 1), files("m-7.data-00001-of-00002")),
			torn: []string{"m-7: index of 1 shards, 2 are there"},
		},
		{
			name: "no index yet", rule: Rule{Framework: "tensorflow"}, dir: files("model.ckpt-7.data-00000-of-00001"),
			torn: []string{"model.ckpt-7: no model.ckpt-7.index"},
		},
		{
			name: "temporary names", rule: Rule{Framework: "tensorflow"}, dir: files("model.ckpt-7.data-00000-of-00001.tempstate123", "graph.pbtxt", "events.out.tfevents.17.host-1"),
		},
		{name: "steps are numbers", rule: Rule{Framework: "tensorflow"}, dir: join(shards("m-99", 1), shards("m-100", 1)), want: []seen{{99, "m-99"}, {100, "m-100"}}},
		{name: "an export", rule: Rule{Framework: "tensorflow"}, dir: golden(t, "tensorflow/export")},
		{name: "the export's own folder", rule: Rule{Framework: "tensorflow"}, dir: golden(t, "tensorflow/export/variables")},
		{
			name: "pattern wins over the framework", rule: Rule{Pattern: "ckpt-*.json", Framework: "tensorflow"},
			dir: files("ckpt-50.json", "ckpt-100.json", "ckpt-150.json.tmp"), want: []seen{{50, "ckpt-50.json"}, {100, "ckpt-100.json"}},
		},
		{name: "empty file", rule: Rule{Pattern: "ckpt-*"}, dir: files("ckpt-5", "ckpt-6 (empty)"), want: []seen{{5, "ckpt-5"}}, torn: []string{"ckpt-6: it is empty"}},
		{name: "folders", rule: Rule{Pattern: "checkpoint-*"}, dir: files("checkpoint-500/model.bin"), want: []seen{{500, "checkpoint-500"}}},
		{name: "no number", rule: Rule{Pattern: "*.pt"}, dir: files("last.pt")},
		{name: "in a folder below", rule: Rule{Pattern: "*/w-*.bin"}, dir: files("3/w-12.bin"), want: []seen{{12, "3/w-12.bin"}}},
		{name: "in the making", rule: Rule{Pattern: "*"}, dir: files(".ckpt-5", ".set-aside-1/ckpt-7")},
		{
			name: "files that a folder must have", rule: Rule{Pattern: "checkpoint-*", Whole: Whole{Files: []string{"trainer_state.json", "*.bin"}}},
			dir:  files("checkpoint-5/trainer_state.json", "checkpoint-5/m.bin", "checkpoint-6/m.bin", "checkpoint-7/m.bin (empty)", "checkpoint-7/trainer_state.json"),
			want: []seen{{5, "checkpoint-5"}}, torn: []string{"checkpoint-6: no file trainer_state.json in it", "checkpoint-7: no file *.bin in it"},
		},
		{name: "size", rule: Rule{Pattern: "c-*", Whole: Whole{Size: 2}}, dir: files("c-1", "c-2/a", "c-2/b"), want: []seen{{2, "c-2"}}, torn: []string{"c-1: it has 1 bytes, want 2"}},
		{name: "steady", rule: Rule{Pattern: "c-*", Whole: Whole{Steady: time.Hour}}, dir: join(files("c-1"), fstest.MapFS{"c-2": {Data: []byte("x"), ModTime: time.Now()}}), want: []seen{{1, "c-1"}}, torn: []string{"c-2: it was written just now"}},
		{name: "marker in a folder", rule: Rule{Marker: "DONE"}, dir: files("s-1/x", "s-1/DONE (empty)", "s-2/x", "other-3"), want: []seen{{1, "s-1"}}},
		{name: "marker behind a file", rule: Rule{Pattern: "s-?", Marker: ".done"}, dir: files("s-1", "s-1.done (empty)", "s-2"), want: []seen{{1, "s-1"}}, torn: []string{"s-2: no s-2.done"}},
		{name: "marker elsewhere", rule: Rule{Pattern: "s-?", Marker: "done/{}"}, dir: files("s-1", "done/s-1", "s-2"), want: []seen{{1, "s-1"}}, torn: []string{"s-2: no done/s-2"}},
		{
			name: "a file that is no model", rule: Rule{Framework: "pytorch"}, dir: files("ckpt-1.pt", "step-2/__0_0.distcp"),
			torn: []string{"ckpt-1.pt: ckpt-1.pt: neither a zip nor a pickle", "step-2: no step-2/.metadata"},
		},
		{name: "no network beside the epoch", rule: Rule{Framework: "mxnet"}, dir: files("m-0001.params"), torn: []string{"m-0001.params: no m-symbol.json"}},
		{name: "the binary form of a model", rule: Rule{Framework: "xgboost"}, dir: files("r-5.model", "r-6.model (empty)", "notes.json", "r-7.json"), want: []seen{{5, "r-5.model"}}, torn: []string{"r-6.model: r-6.model: it is empty", "r-7.json: r-7.json: not a model of XGBoost"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			whole, torn := look(t, tt.rule, tt.dir)
			if diff := cmp.Diff(tt.want, whole); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var words []string
			for _, one := range torn {
				words = append(words, one.Path+": "+one.Why)
			}
			if diff := cmp.Diff(tt.torn, words); diff != "" {
				t.Errorf("torn (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadPatternIsNamed(t *testing.T) {
	if _, err := (Rule{Pattern: "["}).Look(fstest.MapFS{"a": {}}); err == nil {
		t.Error("got no error, want one that names the pattern")
	}
}

func TestFoundByStep(t *testing.T) {
	f := Found{Whole: []Checkpoint{{Step: 10}, {Step: 20}, {Step: 30}}}
	if c, ok := f.At(20); !ok || c.Step != 20 {
		t.Errorf("at 20: got %v %v", c, ok)
	}
	if c, ok := f.At(25); ok {
		t.Errorf("at 25: got %v, want none", c)
	}
	if c, ok := f.Newest(); !ok || c.Step != 30 {
		t.Errorf("newest: got %v %v", c, ok)
	}
}

// counting counts how often files are opened.
type counting struct {
	fs.FS
	opened *int
}

func (c counting) Open(name string) (fs.File, error) {
	if path.Ext(name) == ".pt" {
		*c.opened++
	}
	return c.FS.Open(name)
}

func TestWhatHasNotChangedIsNotReadAgain(t *testing.T) {
	files, opened := golden(t, "torch/zip"), 0
	l := &Looker{Rule: Rule{Framework: "pytorch"}}
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			files["ckpt-9.pt"].ModTime = time.Now()
		}
		if found, err := l.Look(counting{files, &opened}); err != nil || len(found.Whole) != 1 || opened != want {
			t.Errorf("look %d: %v, %v, opened %d times, want %d", i, found, err, opened, want)
		}
	}
}

func TestStepsOfPyTorchsNames(t *testing.T) {
	for name, want := range map[string]int64{"ckpt-9": 9, "epoch=02-val_loss=0.32": 2, "epoch=2-step=300": 300, "model_v2_100": 100, "step=7": 7} {
		if got, ok := torchStep(name); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", name, got, ok, want)
		}
	}
}

func FuzzForms(f *testing.F) {
	for _, name := range []string{
		"tensorflow/v2/model.ckpt-7.index", "tensorflow/v1/model.ckpt-7", "torch/zip/ckpt-9.pt", "torch/old/ckpt-9.pt", "torch/sharded/step-30/.metadata",
		"mxnet/model-0003.params", "xgboost/model-2.json", "xgboost/model-2.ubj", "lightgbm/model-2.txt",
	} {
		text, err := os.ReadFile(path.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		c := content{bytes.NewReader(text), int64(len(text)), func() error { return nil }}
		for _, is := range []func(content) error{
			wholeTorch, wholeZip, wholePickled, wholeMXNet, wholeXGBoost, wholeLightGBM, wholeHDF, wholeJSON, wholeTable, wholeParams, wholeModel,
		} {
			_ = is(c) // whatever it is, there is an answer
		}
		_, _ = readBundle(c)
		_ = distributed(fstest.MapFS{"s/.metadata": {Data: text}}, "s", nil)
	})
}
