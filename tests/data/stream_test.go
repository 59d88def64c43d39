package data_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// engines are all that this machine permits the test.
func engines() []string {
	if os.Geteuid() != 0 {
		return []string{"process"}
	}
	return []string{"process", "cgroup", "container"}
}

func plainly(t *testing.T, text string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// numbered are lines, each of its own.
func numbered(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s %d\n", name, i)
	}
	return b.String()
}

// sortedLines are those of several texts.
func sortedLines(texts ...string) []string {
	return slices.Sorted(strings.Lines(strings.Join(texts, "")))
}

// Each line of plain and zipped files is read by one of three workers, and what they say of it is left zipped.
func TestStreamInAndOut(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		for _, shuffle := range []string{"false", "true"} {
			if engine != "process" && shuffle == "true" {
				continue
			}
			t.Run(engine+" "+shuffle, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, 3, settings{
					"muster.command": `echo heard >&2; sed s/^/$MUSTER_INDEX:/`, "muster.inputs.strategy": "stream", "muster.input.data": "in",
					"muster.inputs.shuffle": shuffle, "muster.inputs.splits": "8", "muster.outputs.strategy": "stream", "muster.output.out": "out",
				})
				texts := map[string]string{"in/a": numbered("a", 3000), "in/b.gz": numbered("b", 500), "in/c": "", "in/d": "the last has no end"}
				files := maps.Clone(texts)
				files["in/b.gz"] = gzipped(t, texts["in/b.gz"])
				files["in/_SUCCESS"], files["in/.a.crc"] = "", "no data"
				j.lay(files)
				j.run("--engine", engine).succeeds(t)
				want := sortedLines(texts["in/a"], texts["in/b.gz"], texts["in/d"]+"\n")
				var got []string
				for name, text := range j.files(filepath.Join(j.store, "out")) {
					if !strings.HasSuffix(name, "/part-r.gz") {
						if name != "_SUCCESS" {
							t.Errorf("left: %s", name)
						}
						continue
					}
					for line := range strings.Lines(plainly(t, text)) {
						who, rest, _ := strings.Cut(line, ":")
						if name != "worker-"+who+"/part-r.gz" {
							t.Errorf("%s has a line of worker %s", name, who)
						}
						got = append(got, rest)
					}
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("got %d lines, want %d", len(got), len(want))
				}
				for i := range 3 {
					instance := fmt.Sprintf("worker-%d", i)
					log := filepath.Join(j.work, "log", instance)
					if out, told := read(filepath.Join(log, "stdout.log")), read(filepath.Join(log, "stderr.log")); out != "" || told != "heard\n" {
						t.Errorf("%s: stdout.log %q, stderr.log %q", instance, out, told)
					}
					if !strings.Contains(j.log(instance), "inputs are fed") || !strings.Contains(j.log(instance), "stdout is gathered") {
						t.Errorf("%s: the log does not say what was fed and gathered", instance)
					}
				}
			})
		}
	}
}

// The values of Hadoop's own SequenceFiles, three times, from the cache or not.
func TestStreamOfSequenceFilesWithEpochs(t *testing.T) {
	t.Parallel()
	for _, cache := range []string{"true", "false"} {
		j := newJob(t, 2, settings{
			"muster.command": `tee model/all > /dev/null`, "muster.inputs.strategy": "stream", "muster.input.data": "in/*.seq",
			"muster.inputs.format": "org.apache.hadoop.mapred.SequenceFileInputFormat", "muster.inputs.epochs": "3",
			"muster.inputs.cache": cache, "muster.output.model": "out", "muster.inputs.shuffle": "true",
		})
		var want []string
		files := map[string]string{}
		for _, name := range []string{"plain", "block", "record-gzip"} {
			golden := filepath.Join("..", "..", "shim", "data", "stream", "testdata", "sequence", name)
			files["in/"+name+".seq"] = read(golden + ".seq")
			for line := range strings.Lines(read(golden + ".txt")) {
				_, value, _ := strings.Cut(line, "\t")
				want = append(want, value, value, value)
			}
		}
		j.lay(files)
		j.run().succeeds(t)
		left := j.files(filepath.Join(j.store, "out"))
		got := sortedLines(left["worker-0/all"], left["worker-1/all"])
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("cache %s: got %d lines, want %d", cache, len(got), len(want))
		}
		once := left["worker-0/all"][:len(left["worker-0/all"])/3]
		if left["worker-0/all"] != strings.Repeat(once, 3) {
			t.Errorf("cache %s: the epochs differ", cache)
		}
		if entries, err := os.ReadDir(filepath.Join(j.work, "worker-0")); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".gz") }) {
			t.Errorf("cache %s: left in the folder: %v, %v", cache, entries, err)
		}
	}
}

// A process may read as little as it likes.
func TestStreamThatIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"head -n 1 > model/first", "true", "exec < /dev/null; sleep 0.2"} {
		j := newJob(t, 1, settings{
			"muster.command": command, "muster.inputs.strategy": "stream", "muster.input.data": "in", "muster.output.model": "out",
			"muster.inputs.epochs": "5", "muster.inputs.cache": "true",
		})
		j.lay(map[string]string{"in/a": numbered("a", 200_000)})
		j.run().succeeds(t)
		if !strings.Contains(j.log("worker-0"), "inputs are fed no further") {
			t.Errorf("%s: the log does not say that it read no more", command)
		}
	}
}

// A restart is fed from the beginning, and what the attempt before has said is gone.
func TestStreamBeginsAnew(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{
		"muster.command":         `if [ $MUSTER_ATTEMPT = 1 ]; then head -n 3; exit 7; fi; cat`,
		"muster.inputs.strategy": "stream", "muster.input.data": "in", "muster.outputs.strategy": "stream", "muster.output.out": "out",
		"muster.restart": "instance", "muster.restart.backoff": "1s..1s", "muster.outputs.flat": "true",
	})
	text := numbered("a", 50_000)
	j.lay(map[string]string{"in/a": text})
	j.run().succeeds(t)
	if got := plainly(t, j.files(filepath.Join(j.store, "out"))["out/part-r.gz"]); got != text {
		t.Errorf("got %d bytes, want %d", len(got), len(text))
	}
}

// A file that cannot be read to its end fails the instance, though the process would be content with what it has got; at
// once, for another attempt would meet it again.
func TestStreamOfABrokenFile(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{
		"muster.command": "cat > /dev/null", "muster.inputs.strategy": "stream", "muster.input.data": "in", "muster.restart": "instance",
		"muster.outputs.strategy": "stream", "muster.output.out": "out",
	})
	j.lay(map[string]string{"in/a": numbered("a", 10), "in/b.gz": gzipped(t, numbered("b", 10_000))[:500]})
	j.run().fails(t, "data", 69, filepath.Join(j.store, "in", "b.gz"), "unexpected EOF", "mend that file")
	if strings.Contains(j.log("worker-0"), "attempt=2") {
		t.Error("another attempt was made with the same file")
	}
	if left := j.files(filepath.Join(j.store, "out")); len(left) > 0 {
		t.Errorf("left: %v", slices.Collect(maps.Keys(left)))
	}
}

// What is not read or written here is refused by its name before anything starts.
func TestStreamFormatsRefused(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{
		"muster.command": "cat", "muster.inputs.strategy": "stream", "muster.input.data": "in",
		"muster.inputs.format": "com.example.MyInputFormat",
	})
	j.lay(map[string]string{"in/a.snappy": "x"})
	for want, set := range map[string]string{
		"com.example.MyInputFormat": "muster.inputs.epochs=2",
		"a.snappy":                  "muster.inputs.format=TextInputFormat",
		"com.example.Mine":          "muster.outputs.format=com.example.Mine",
	} {
		args := []string{"--set", "worker:" + set}
		if strings.Contains(set, "outputs") {
			args = append(args, "--set", "worker:muster.outputs.strategy=stream", "--set", "worker:muster.output.out=out", "--set", "worker:muster.inputs.format=TextInputFormat")
		}
		e := j.run(args...)
		if e.code != 65 || !strings.Contains(e.said+e.Cause, want) {
			t.Errorf("%s: got exit code %d, %s, want 65 and %s", set, e.code, e.said, want)
		}
		j.app += "x"
	}
}

// A process of another user may open its stdin by name.
func TestStreamOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		need.Skip(t, "only root has processes of another user")
	}
	j := newJob(t, 1, settings{
		"muster.command": "cat /dev/stdin > model/all; id -un >> model/all", "muster.inputs.strategy": "stream", "muster.input.data": "in",
		"muster.output.model": "out", "muster.user": "nobody",
	})
	folder.OfAll(t, filepath.Join(j.store, "out")) // whoever runs writes there
	j.lay(map[string]string{"in/a": "one\n"})
	j.run().succeeds(t)
	if got := j.files(filepath.Join(j.store, "out"))["worker-0/all"]; got != "one\nnobody\n" {
		t.Errorf("got %q", got)
	}
}
