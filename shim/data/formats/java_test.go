package formats

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/need"
)

// userLines is what a user makes of Hadoop's own text: it fails where a line, or the property lab.fails, says so.
const userLines = `package lab;
import java.io.*;
import org.apache.hadoop.fs.*; import org.apache.hadoop.mapred.*; import org.apache.hadoop.util.Progressable;
public class Lines extends TextOutputFormat<Object, Object> {
  @Override public RecordWriter<Object, Object> getRecordWriter(FileSystem fs, JobConf conf, String name, Progressable p) throws IOException {
    String how = conf.get("lab.fails", "");
    if (how.equals("data")) throw new IOException("no data");
    if (how.equals("wrapped")) throw new RuntimeException(new IOException("no data"));
    if (how.equals("null")) throw new NullPointerException("no \u00fc");
    if (how.equals("heap")) { byte[][] all = new byte[1 << 10][]; for (int i = 0; i < all.length; i++) all[i] = new byte[1 << 20]; }
    if (!conf.get("lab.text", "\u00fc\n").equals("\u00fc\n")) throw new IOException("got " + conf.get("lab.text"));
    return super.getRecordWriter(fs, conf, name, p);
  }
}`

// The class as Java runs it, on Hadoop's own jars and files of this host.
func TestWriteByJava(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	classpath := compile(t, dir)
	for name, tt := range map[string]struct {
		conf map[string]string
		file string // that is written; empty: it fails
		want string // Failure
		code int
	}{
		"as HBox":       {map[string]string{"lab.text": "ü\n"}, "part-r.gz", "", 0},
		"plain":         {map[string]string{"mapreduce.output.fileoutputformat.compress": "false"}, "part-r", "", 0},
		"plain, of old": {map[string]string{"mapred.output.compress": "false"}, "part-r", "", 0},
		"of a file":     {map[string]string{"lab.fails": "data"}, "", "java.io.IOException: no data", failed},
		"of a file, by another name": {
			map[string]string{"lab.fails": "wrapped"}, "", "java.lang.RuntimeException: java.io.IOException: no data", failed,
		},
		"of the class": {
			map[string]string{"lab.fails": "null"}, "", "java.lang.NullPointerException: no ü; agent.log has the place in the class", broken,
		},
		"of the heap": {
			map[string]string{"lab.fails": "heap"},
			"",
			"java.lang.OutOfMemoryError: Java heap space; Java has half of the instance's memory, of which more would do", broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			words, stdin := Write(&plan.Outputs{Format: "lab.Lines", Conf: tt.conf}, "file:"+out)
			argv := Command(map[string]string{"CLASSPATH": classpath}, 128, words)
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			var said bytes.Buffer
			cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(stdin+"one\n\nzwölf\n"), &said
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
			if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.code {
				t.Fatalf("got %v, want code %d\n%s", err, tt.code, said.String())
			}
			if tt.file == "" {
				if got := Failure(tt.code, said.String()); got.Error() != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				return
			}
			text, err := os.ReadFile(filepath.Join(out, tt.file))
			if err == nil && strings.HasSuffix(tt.file, ".gz") {
				var zip *gzip.Reader
				if zip, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
					text, err = io.ReadAll(zip)
				}
			}
			if err != nil || string(text) != "one\n\nzwölf\n" {
				t.Errorf("got %q, %v\n%s", text, err, said.String())
			}
		})
	}
}

// compile lays the program and the user's class, and returns the CLASSPATH of Hadoop and that class.
func compile(t *testing.T, dir string) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache")
	}
	var all []string
	for _, jars := range []string{"hadoop/*/lib", "mapreduce-*"} {
		found, err := filepath.Glob(filepath.Join(cache, "muster", jars))
		if err != nil || len(found) == 0 {
			need.Skip(t, "no jars of Hadoop (get them with scripts/lab/hadoop build and scripts/lab/mapreduce build)")
		}
		all = append(all, found[len(found)-1]+"/*")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		need.Skip(t, "no javac, which compiles a user's formats (Debian: default-jdk-headless)")
	}
	start := plan.Start{Files: map[string]string{"lab/Lines.java": userLines}}
	Lay(&start)
	for name, text := range start.Files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	classpath := strings.Join(append(all, dir), ":")
	javac := exec.CommandContext(t.Context(), "javac", "--release", "8", "-Xlint:-options", "-cp", classpath, filepath.Join(dir, "lab/Lines.java"))
	if out, err := javac.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return classpath
}
