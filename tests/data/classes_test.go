package data_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// userFormats are what a user wrote: records that end with a semicolon, in files and splits in whatever order; and
// lines in capitals, under a name of its own, from a writer that takes Hadoop's texts alone.
var userFormats = map[string]string{
	"Semicolons": `package lab;
import java.io.*; import java.util.*;
import org.apache.hadoop.fs.*; import org.apache.hadoop.io.*; import org.apache.hadoop.mapred.*;
public class Semicolons extends FileInputFormat<LongWritable, Text> {
  @Override public InputSplit[] getSplits(JobConf conf, int want) throws IOException {
    System.out.println("no record of mine");
    List<InputSplit> all = Arrays.asList(super.getSplits(conf, want));
    Collections.shuffle(all);
    return all.toArray(new InputSplit[0]);
  }
  @Override protected boolean isSplitable(FileSystem fs, Path p) { return false; }
  @Override public RecordReader<LongWritable, Text> getRecordReader(InputSplit split, JobConf conf, Reporter r) throws IOException {
    Path path = ((FileSplit) split).getPath();
    return new Pieces(new Scanner(path.getFileSystem(conf).open(path), "UTF-8").useDelimiter(conf.get("mapreduce.lab.end")));
  }
  static class Pieces implements RecordReader<LongWritable, Text> {
    private final Scanner in; private long n;
    Pieces(Scanner in) { this.in = in; }
    public boolean next(LongWritable key, Text value) {
      if (!in.hasNext()) return false;
      key.set(n++); value.set(in.next()); return true;
    }
    public LongWritable createKey() { return new LongWritable(); }
    public Text createValue() { return new Text(); }
    public long getPos() { return n; }
    public float getProgress() { return 0; }
    public void close() { in.close(); }
  }
}`,
	"Capitals": `package lab;
import java.io.*;
import org.apache.hadoop.fs.*; import org.apache.hadoop.io.*; import org.apache.hadoop.mapred.*; import org.apache.hadoop.util.Progressable;
public class Capitals extends FileOutputFormat<Text, Text> {
  @Override public RecordWriter<Text, Text> getRecordWriter(FileSystem fs, JobConf conf, String name, Progressable p) throws IOException {
    Path path = FileOutputFormat.getTaskOutputPath(conf, name + ".capitals");
    if (!path.toString().contains("/_temporary/0/_temporary/attempt_")) throw new IOException("no place of an attempt: " + path);
    FSDataOutputStream out = path.getFileSystem(conf).create(path, false);
    return new RecordWriter<Text, Text>() {
      public void write(Text key, Text value) throws IOException { out.write((value.toString().toUpperCase() + "\n").getBytes("UTF-8")); }
      public void close(Reporter r) throws IOException { out.close(); }
    };
  }
}`,
	"Fails": `package lab;
import java.io.*;
import org.apache.hadoop.fs.*; import org.apache.hadoop.io.*; import org.apache.hadoop.mapred.*; import org.apache.hadoop.util.Progressable;
public class Fails extends FileOutputFormat<Object, Object> {
  @Override public RecordWriter<Object, Object> getRecordWriter(FileSystem fs, JobConf conf, String name, Progressable p) throws IOException {
    FSDataOutputStream out = fs.create(FileOutputFormat.getTaskOutputPath(conf, name), false);
    return new RecordWriter<Object, Object>() {
      public void write(Object key, Object value) throws IOException { out.write(1); if (value.equals("third")) throw new IOException("no thirds"); }
      public void close(Reporter r) throws IOException { out.close(); }
    };
  }
}`,
}

// formatsJar compiles them against the Hadoop of the tests, and says where mapreduce's own jar lies.
func formatsJar(t *testing.T, c *hadoop.Cluster) (jar, mapreduce string) {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		need.Skip(t, "no javac, which compiles a user's formats (Debian: default-jdk-headless)")
	}
	where, err := exec.CommandContext(t.Context(), "../../scripts/lab/mapreduce", "where").Output()
	mapreduce = strings.TrimSpace(string(where))
	if jars, _ := filepath.Glob(filepath.Join(mapreduce, "*.jar")); err != nil || len(jars) == 0 {
		need.Skip(t, "no jar of Hadoop's mapreduce (get it with scripts/lab/mapreduce build)")
	}
	dir := t.TempDir()
	args := []string{"--release", "8", "-Xlint:-options", "-cp", filepath.Join(c.Home(), "lib", "*") + ":" + filepath.Join(mapreduce, "*"), "-d", filepath.Join(dir, "classes")}
	for name, text := range userFormats {
		path := filepath.Join(dir, name+".java")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if out, err := exec.CommandContext(t.Context(), "javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	jar = filepath.Join(dir, "formats.jar")
	file, err := os.Create(jar)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(file)
	if err := w.AddFS(os.DirFS(filepath.Join(dir, "classes"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return jar, mapreduce
}

// Classes of a user's read and write: each record is one worker's, though the class lists its splits in another order
// each time, and what it has written is committed.
func TestFormatsOfAUser(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	jar, mapreduce := formatsJar(t, c)
	dir := c.Folder(t)
	in, want := map[string]string{}, []string{}
	for _, name := range []string{"a", "b", "c", "sub/d", "sub/e", "sub/f", "g", "h", "i"} {
		for i := range 7 {
			record := name + " " + strings.Repeat("x", i)
			in["in/"+name] += record + ";"
			want = append(want, strings.ToUpper(record)+"\n")
		}
	}
	slices.Sort(want)
	submitted := func(t *testing.T, engine string, words ...string) (*job, ending) {
		j := newJob(t, 1, settings{})
		j.onHadoop(c)
		j.env = append(j.env, "HADOOP_CLASSPATH="+mapreduce+"/*")
		e := j.submit(append([]string{
			"--engine", engine, "--worker-memory", "512", "--input-strategy", "STREAM", "--output-strategy", "STREAM", "--jars", jar,
			"--input", dir + "/in#data",
		}, words...)...)
		return j, e
	}
	in["formats.jar"] = read(jar)
	newJob(t, 1, settings{}).put(c, dir, in)
	for engine, shuffle := range map[string]string{"process": "true", "auto": "false"} {
		t.Run(engine, func(t *testing.T) {
			place := dir + "/out-" + engine
			j, e := submitted(t, engine, "--worker-num", "2", "--inputformat", "lab.Semicolons", "--outputformat", "lab.Capitals", "--inputformat-shuffle", shuffle,
				"--conf", "mapreduce.lab.end=;", "--output", place+"#model", "cat")
			e.succeeds(t)
			c.FsShell(t, "-get", place, j.store)
			left := j.files(filepath.Join(j.store, filepath.Base(place)))
			if got := sortedLines(left["worker-0/part-r.capitals"], left["worker-1/part-r.capitals"]); !slices.Equal(got, want) {
				t.Errorf("got %d records, want %d: %q", len(got), len(want), got)
			}
			if _, whole := left["_SUCCESS"]; !whole || len(left) != 3 {
				t.Errorf("left %v, want a file of each worker and _SUCCESS", left)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		for _, tt := range []struct {
			in, out string
			said    []string
		}{
			{"lab.Missing", "lab.Capitals", []string{"no class lab.Missing in formats.jar", "--jars brings the jar"}},
			{"lab.Capitals", "lab.Capitals", []string{"lab.Capitals is no org.apache.hadoop.mapred.InputFormat"}},
			{"lab.Semicolons", "lab.Gone", []string{"no class lab.Gone in formats.jar", "--jars brings the jar"}},
			{"lab.Semicolons", "lab.Fails", []string{"by lab.Fails", "no thirds"}},
		} {
			j, e := submitted(t, "process", "--inputformat", tt.in, "--outputformat", tt.out, "--conf", "mapreduce.lab.end=;", "--output", dir+"/none#model", "sh", "-c", "cat >/dev/null; echo first; echo second; echo third")
			if e.code != 2 {
				t.Errorf("%+v: got exit code %d, want 2", tt, e.code)
			}
			for _, words := range tt.said {
				if !strings.Contains(e.Cause, words) {
					t.Errorf("%+v: got %q, want %q in it\n%s", tt, e.Cause, words, j.log("worker-0"))
				}
			}
			if out := c.FsShell(t, "-ls", "-R", dir); strings.Contains(out, "/none/") {
				t.Errorf("%+v: left:\n%s", tt, out)
			}
		}
	})
	t.Run("begins anew", func(t *testing.T) {
		j := newJob(t, 1, settings{
			"muster.command": `if [ $MUSTER_ATTEMPT = 1 ]; then head -n 3; exit 7; fi; cat`, "muster.inputs.strategy": "stream", "muster.input.data": c.URI + dir + "/in",
			"muster.inputs.format": "lab.Semicolons", "muster.inputs.epochs": "2", "muster.inputs.cache": "true", "muster.outputs.strategy": "stream",
			"muster.output.out": c.URI + dir + "/anew", "muster.outputs.format": "lab.Capitals", "muster.restart": "instance", "muster.restart.backoff": "1s..1s",
			"muster.formats.conf.mapreduce.lab.end": ";", "muster.file.formats.jar": c.URI + dir + "/formats.jar",
		})
		j.onHadoop(c)
		j.env = append(j.env, "HADOOP_CLASSPATH="+mapreduce+"/*")
		j.end(j.command("run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--json", "--engine", "process", "--set", "worker:yarn.memory=512")).succeeds(t)
		got := slices.Sorted(strings.Lines(c.FsShell(t, "-cat", dir+"/anew/worker-0/part-r.capitals")))
		if twice := slices.Sorted(slices.Values(slices.Concat(want, want))); !slices.Equal(got, twice) {
			t.Errorf("got %d records, want %d: %q", len(got), len(twice), got)
		}
	})
	if out := c.FsShell(t, "-ls", "-R", "/"); strings.Contains(out, "/.muster/splits/") {
		t.Errorf("lists of splits are left:\n%s", out)
	}
}

// The class that runs them is what its source says.
func TestFormatsAreCompiled(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "javac", "-version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "javac 17.") {
		need.Skip(t, "no javac 17, which has compiled the class (Debian: openjdk-17-jdk-headless)")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../scripts/formats", dir).CombinedOutput(); err != nil {
		t.Fatalf("scripts/formats: %v\n%s", err, out)
	}
	made, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil || len(made) != 1 {
		t.Fatalf("made %v, %v, want one class", made, err)
	}
	if read(filepath.Join(dir, made[0])) != read(filepath.Join("../../shim/data/formats/java", made[0])) {
		t.Errorf("%s is not of its source; make it again with scripts/formats", made[0])
	}
}
