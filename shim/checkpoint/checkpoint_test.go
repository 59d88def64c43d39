package checkpoint

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestNewestTakesOnlyWholeCheckpoints(t *testing.T) {
	tests := []struct {
		name  string
		rule  Rule
		files []string
		want  *Checkpoint
	}{
		{"nothing", Rule{Framework: "tensorflow"}, nil, nil},
		{"no rule for this framework", Rule{Framework: "none"}, []string{"ckpt-1.json"}, nil},
		{"tensorflow, one shard", Rule{Framework: "tensorflow"}, []string{"checkpoint", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001", "model.ckpt-7.meta"}, &Checkpoint{7, "model.ckpt-7"}},
		{"tensorflow, a shard is missing in the newer", Rule{Framework: "tensorflow"}, []string{
			"model.ckpt-7.index", "model.ckpt-7.data-00000-of-00002", "model.ckpt-7.data-00001-of-00002",
			"model.ckpt-900.index", "model.ckpt-900.data-00001-of-00002",
		}, &Checkpoint{7, "model.ckpt-7"}},
		{"tensorflow, no index yet", Rule{Framework: "tensorflow"}, []string{"model.ckpt-7.data-00000-of-00001"}, nil},
		{"tensorflow, temporary names", Rule{Framework: "tensorflow"}, []string{"model.ckpt-7.data-00000-of-00001.tempstate123", "model.ckpt-7.index"}, nil},
		{"tensorflow, steps are numbers", Rule{Framework: "tensorflow"}, []string{
			"m-99.index", "m-99.data-00000-of-00001", "m-100.index", "m-100.data-00000-of-00001",
		}, &Checkpoint{100, "m-100"}},
		{"pattern wins over the framework", Rule{Pattern: "ckpt-*.json", Framework: "tensorflow"}, []string{"ckpt-50.json", "ckpt-100.json", "ckpt-150.json.tmp"}, &Checkpoint{100, "ckpt-100.json"}},
		{"pattern, empty file", Rule{Pattern: "ckpt-*"}, []string{"ckpt-5", "ckpt-6 (empty)"}, &Checkpoint{5, "ckpt-5"}},
		{"pattern, folders", Rule{Pattern: "checkpoint-*"}, []string{"checkpoint-500/model.bin"}, &Checkpoint{500, "checkpoint-500"}},
		{"pattern, no number", Rule{Pattern: "*.pt"}, []string{"last.pt"}, nil},
		{"pattern in a subfolder", Rule{Pattern: "*/w-*.pt"}, []string{"3/w-12.pt"}, &Checkpoint{12, "3/w-12.pt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := fstest.MapFS{}
			for _, f := range tt.files {
				text := []byte("x")
				if f == "ckpt-6 (empty)" {
					f, text = "ckpt-6", nil
				}
				dir[f] = &fstest.MapFile{Data: text}
			}
			got, ok, err := tt.rule.Newest(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ok != (tt.want != nil) || ok && got != *tt.want {
				t.Errorf("got %v %v, want %v", got, ok, tt.want)
			}
		})
	}
}

func TestListIsOldestFirst(t *testing.T) {
	dir := fstest.MapFS{"c-10": {Data: []byte("x")}, "c-9": {Data: []byte("x")}}
	got, err := Rule{Pattern: "c-*"}.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Checkpoint{{9, "c-9"}, {10, "c-10"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadPatternIsNamed(t *testing.T) {
	if _, err := (Rule{Pattern: "["}).List(fstest.MapFS{"a": {}}); err == nil {
		t.Error("got no error, want one that names the pattern")
	}
}

func TestNewestUpToTheStepThatAllHave(t *testing.T) {
	dir := fstest.MapFS{"c-10": {Data: []byte("x")}, "c-20": {Data: []byte("x")}, "c-30": {Data: []byte("x")}}
	for upTo, want := range map[int64]int64{35: 30, 30: 30, 29: 20, 10: 10, 9: 30} { // older ones are gone: the newest
		c, ok, err := Rule{Pattern: "c-*"}.Newest(dir, &upTo)
		if err != nil || !ok || c.Step != want {
			t.Errorf("up to %d: got %v %v %v, want step %d", upTo, c, ok, err, want)
		}
	}
}
