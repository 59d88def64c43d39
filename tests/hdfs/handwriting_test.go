package hdfs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// turns are the files of each worker where they are dealt out in turn, blocks where they come as one stream each.
var (
	turns  = [workers][]int{{0, 3}, {1, 4}, {2}}
	blocks = [workers][]int{{0, 1}, {2, 3}, {4}}
)

// Files come as copies, what a worker makes of them is left, and a save during the run has what there is of it.
func TestDownloadUploadAndSave(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	// a line of history each 5 s: what is written to whenever it is copied would be left out of a save
	j.start(100, "0.6", "site.global.train.data=data", "worker:muster.output.model="+j.dir+"/out", "site.global.train.model=model")
	j.await("a worker's history", func() bool {
		histories, _ := filepath.Glob(filepath.Join(j.work, "worker-*", "model", "history.csv"))
		return len(histories) == workers && !slices.ContainsFunc(histories, func(path string) bool { return len(j.read(path)) == 0 })
	})
	if out, err := j.muster("save", j.app).CombinedOutput(); err != nil {
		t.Errorf("muster save: %v\n%s", err, out)
	}
	j.succeeds()

	for worker, own := range turns {
		instance := fmt.Sprintf("worker-%d", worker)
		want := map[string][]byte{}
		for _, i := range own {
			want[j.names[i]] = j.read(filepath.Join(j.local, j.names[i]))
		}
		same(t, instance+"'s copies", j.below(filepath.Join(j.work, instance, "data")), want)
	}
	finals, saves := j.finals(j.left())
	j.uploaded(finals, turns)
	j.saved(saves, finals)
}

// A process that is told of the files reads them itself, here by Hadoop's own command.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	j.start(100, "0", "worker:muster.inputs.strategy=placeholder", "site.global.train.data=data", "site.global.train.reader="+j.reader+" dfs -cat",
		"worker:muster.output.model="+j.dir+"/out", "site.global.train.model=model")
	j.succeeds()
	finals, _ := j.finals(j.left())
	j.uploaded(finals, turns)
}

// The lines of the files are a worker's stdin, and its stdout is what is left.
func TestStreams(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	j.start(100, "0", "worker:muster.inputs.strategy=stream", "site.global.train.data=-",
		"worker:muster.outputs.strategy=stream", "worker:muster.output.said="+j.dir+"/out", "site.global.train.model=model")
	j.succeeds()
	left := j.left()
	told := regexp.MustCompile(`(?m)^step (\d+) loss (\S+)$`)
	all := 0
	for worker, own := range blocks {
		instance := fmt.Sprintf("worker-%d", worker)
		folder := filepath.Join(j.work, instance, "model")
		j.report(instance, j.read(filepath.Join(folder, "report.json")), own)
		said := unpacked(t, left[instance+"/part-r.gz"])
		var steps strings.Builder
		for _, found := range told.FindAllSubmatch(said, -1) {
			fmt.Fprintf(&steps, "%s,%s\n", found[1], found[2])
		}
		all += steps.Len() // the workers share the steps: a slow one may have none
		if want := string(j.read(filepath.Join(folder, "history.csv"))); steps.String() != want {
			t.Errorf("%s: its stdout on HDFS tells\n%s\nwant, by its own history,\n%s", instance, steps.String(), want)
		}
		if worker == 0 && !bytes.Contains(said, []byte("\naccuracy ")) {
			t.Errorf("%s: its stdout on HDFS has no accuracy:\n%s", instance, said)
		}
		delete(left, instance+"/part-r.gz")
	}
	if all == 0 {
		t.Error("no worker's stdout on HDFS tells of a step")
	}
	delete(left, "_SUCCESS")
	if len(left) > 0 {
		t.Errorf("left: %v", slices.Sorted(maps.Keys(left)))
	}
}

// finals are the outputs of the end, by path, and saves those of the run, by the folder of the save.
func (j *job) finals(left map[string][]byte) (finals map[string][]byte, saves map[string]map[string][]byte) {
	finals, saves = map[string][]byte{}, map[string]map[string][]byte{}
	for name, content := range left {
		parts := strings.SplitN(name, "/", 3)
		if parts[0] != "interResult" {
			finals[name] = content
			continue
		}
		if saves[parts[1]] == nil {
			saves[parts[1]] = map[string][]byte{}
		}
		saves[parts[1]][parts[2]] = content
	}
	return finals, saves
}

// uploaded asserts that what lies on HDFS is, bit by bit, what each worker has in its own folder, and that it has read its
// share of the images, and nothing else.
func (j *job) uploaded(finals map[string][]byte, share [workers][]int) {
	j.t.Helper()
	want := map[string][]byte{"_SUCCESS": {}}
	for worker, own := range share {
		instance := fmt.Sprintf("worker-%d", worker)
		for name, content := range j.below(filepath.Join(j.work, instance, "model")) {
			want[path.Join(instance, name)] = content
		}
		j.report(instance, finals[instance+"/report.json"], own)
	}
	if want["worker-0/model.json"] == nil || want["worker-2/history.csv"] == nil {
		j.t.Errorf("the workers have made %v", slices.Sorted(maps.Keys(want)))
	}
	same(j.t, "on HDFS", finals, want)
}

// saved asserts one save of all workers, of a time when they had made a part of what they have made in the end.
func (j *job) saved(saves map[string]map[string][]byte, finals map[string][]byte) {
	j.t.Helper()
	if len(saves) != 1 {
		j.t.Errorf("saves: got %v, want one", slices.Sorted(maps.Keys(saves)))
	}
	for stamp, save := range saves {
		if !regexp.MustCompile(`^interResult_\d{4}(_\d\d){5}$`).MatchString(stamp) {
			j.t.Errorf("a save is called %s", stamp)
		}
		for worker := range workers {
			name := fmt.Sprintf("worker-%d/history.csv", worker)
			if part, all := save[name], finals[name]; len(part) == 0 || len(part) >= len(all) || !bytes.HasPrefix(all, part) {
				j.t.Errorf("%s of the save: got %q, want a beginning of %q", name, part, all)
			}
		}
	}
}

// report asserts that a worker's report tells of the lines of these files.
func (j *job) report(instance string, text []byte, own []int) {
	j.t.Helper()
	var got struct {
		Images int
		SHA256 string
	}
	j.must(json.Unmarshal(text, &got))
	var lines []byte
	for _, i := range own {
		lines = append(lines, j.texts[j.names[i]]...)
	}
	sum := sha256.Sum256(lines)
	if n := bytes.Count(lines, []byte("\n")); got.Images != n || got.SHA256 != hex.EncodeToString(sum[:]) {
		j.t.Errorf("%s has read %d images, sha256 %s; want %d, %x", instance, got.Images, got.SHA256, n, sum)
	}
}

func same(t testing.TB, what string, got, want map[string][]byte) {
	t.Helper()
	for _, name := range slices.Compact(slices.Sorted(maps.Keys(union(got, want)))) {
		g, there := got[name]
		w, wanted := want[name]
		if there != wanted || !bytes.Equal(g, w) {
			t.Errorf("%s: %s: got %d bytes (there: %t), want %d (there: %t), the same", what, name, len(g), there, len(w), wanted)
		}
	}
}

func union(a, b map[string][]byte) map[string][]byte {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
