package data_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// zipped and tarred are archives with these files in them.
func zipped(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func tarred(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name])), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each instance has its own copies of files, folders and archives, which it may change.
func TestFilesAndArchives(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "nobody"} {
		t.Run("user "+user, func(t *testing.T) {
			t.Parallel()
			set := settings{
				"global:muster.file.words":    "lib/words.txt",
				"muster.file.run.sh":          "${NN_URI}/lib/run.sh",
				"muster.file.tree":            "lib/tree",
				"muster.archive.tgz":          "lib/a.tgz",
				"muster.archive.tar":          "lib/a.tar",
				"muster.archive.tar.gz":       "lib/a.tar.gz",
				"muster.archive.zip":          "lib/a.zip",
				"muster.archive.j":            "lib/a.jar",
				"muster.archive.code":         "lib/a.jar",
				"muster.output.out":           "out",
				"muster.command":              `./run.sh >> words && cat words > out/words && cat tree/sub/x > out/x && cat tgz/in tar/in tar.gz/in zip/in j/in code/in > out/in && ./tgz/in > out/ran && for f in tree/sub/x tgz/in zip/in; do echo changed >> $f || exit 1; done && ls -A > out/seen`,
				"global:muster.archive.unset": "lib/a.zip",
			}
			if user != "" {
				if os.Geteuid() != 0 {
					need.Skip(t, "only root has processes of another user")
				}
				set["muster.user"] = user
			}
			j := newJob(t, 2, set)
			in := map[string]string{"in": "#!/bin/cat\n"}
			j.lay(map[string]string{
				"lib/words.txt": "words\n", "lib/run.sh": "#!/bin/sh\necho ran in $MUSTER_INSTANCE\n", "lib/tree/sub/x": "x\n", "lib/tree/y": "y\n",
				"lib/a.tgz": gzipped(t, tarred(t, in)), "lib/a.tar.gz": gzipped(t, tarred(t, in)), "lib/a.tar": tarred(t, in), "lib/a.zip": zipped(t, in), "lib/a.jar": zipped(t, in),
			})
			j.must(os.Chmod(filepath.Join(j.store, "lib/run.sh"), 0o755)) //nolint:gosec // it is run
			folder.OfAll(t, filepath.Join(j.store, "out"))                // whoever runs writes there
			j.run().succeeds(t)
			want := map[string]string{}
			for _, instance := range []string{"worker-0/", "worker-1/"} {
				maps.Copy(want, map[string]string{
					instance + "words": "words\nran in " + strings.TrimSuffix(instance, "/") + "\n", instance + "x": "x\n", instance + "in": strings.Repeat("#!/bin/cat\n", 6), instance + "ran": "#!/bin/cat\n",
				})
			}
			got := j.files(filepath.Join(j.store, "out"))
			for name := range got {
				if strings.HasSuffix(name, "/seen") || name == "_SUCCESS" || strings.HasPrefix(name, "_muster/") {
					delete(got, name)
				}
			}
			j.same(got, want)
			if text := read(filepath.Join(j.store, "lib/words.txt")) + read(filepath.Join(j.store, "lib/tree/sub/x")); text != "words\nx\n" {
				t.Errorf("the sources are changed: %q", text)
			}
		})
	}
}

// What cannot be brought is told before a process starts, by its key, with what would do.
func TestFilesRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		set   settings
		class string // empty: refused before there is a run
		code  int
		words []string
	}{
		{"not there", settings{"muster.file.b": "lib/none", "muster.file.a": "lib/words"}, "data", 69, []string{"muster.file.b", "/fs/lib/none"}},
		{"a pattern", settings{"muster.file.b": "lib/w*"}, "data", 69, []string{"muster.file.b", "/fs/lib/w*"}},
		{"a folder as an archive", settings{"muster.archive.b": "lib"}, "definition", 65, []string{"muster.archive.b", "folder, want an archive", "muster.file.b"}},
		{"no archive", settings{"muster.archive.b": "lib/words"}, "definition", 65, []string{"muster.archive.b", "/fs/lib/words"}},
		{"an archive that leads outside", settings{"muster.archive.b": "lib/evil.tar"}, "definition", 65, []string{"muster.archive.b", "evil.tar", "..", "stays inside"}},
		{"one name for two", settings{"muster.file.b": "lib/words", "muster.archive.b": "lib/a.zip"}, "", 65, []string{`"b", the name of muster.file.b as well`}},
		{"the name of an input", settings{"muster.file.b": "lib/words", "muster.input.b": "lib"}, "", 65, []string{`"b", the name of muster.input.b as well`}},
		{"muster's name", settings{"muster.file.app": "lib/words"}, "", 65, []string{"muster.file.app", "a local name after muster.file."}},
		{"a secret of the host", settings{"muster.file.b": "file:///etc/shadow", "muster.user": "nobody"}, "data", 69, []string{"muster.file.b", "/etc/shadow", "permission denied"}},
		{"a secret by a link", settings{"muster.file.b": "/lib/shadow", "muster.user": "nobody"}, "data", 69, []string{"muster.file.b", "/fs/lib/shadow", "permission denied"}},
		{"a path from the top of the store", settings{"muster.file.b": "/../etc/shadow", "muster.user": "nobody"}, "data", 69, []string{"muster.file.b", "/fs/etc/shadow", "no such file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.set["muster.user"] != "" && os.Geteuid() != 0 {
				need.Skip(t, "only root has processes of another user")
			}
			set := settings{"muster.command": "touch ran", "muster.restart": "never"}
			maps.Copy(set, tt.set)
			j := newJob(t, 1, set)
			j.lay(map[string]string{"lib/words": "words", "lib/a.zip": zipped(t, map[string]string{"x": "1"}), "lib/evil.tar": tarred(t, map[string]string{"../x": "1"})})
			j.must(os.Symlink("/etc/shadow", filepath.Join(j.store, "lib/shadow")))
			e := j.run()
			if tt.class != "" {
				e.fails(t, tt.class, tt.code, tt.words...)
			} else if e.code != tt.code {
				t.Errorf("exit code %d, want %d", e.code, tt.code)
			}
			for _, w := range tt.words {
				if tt.class == "" && !strings.Contains(e.said, w) {
					t.Errorf("said %q: want %q in it", e.said, w)
				}
			}
			for _, name := range []string{"ran", "a", "b", "../x", "x"} {
				if _, err := os.Lstat(filepath.Join(j.work, "worker-0", name)); err == nil {
					t.Errorf("%s is there", name)
				}
			}
		})
	}
	j := newJob(t, 1, settings{"muster.command": "touch ran", "muster.restart": "never", "muster.file.a": "lib/words", "muster.file.b": "lib/none", "muster.files.check": "false"})
	j.lay(map[string]string{"lib/words": "words"})
	j.run().fails(t, "data", 69, "muster.file.b")
	if got := read(filepath.Join(j.work, "worker-0", "a")); got != "words" {
		t.Errorf("without the look beforehand: %q", got)
	}
}

// What lies on a web server comes once for all instances and runs of a host, until it is another.
func TestFilesOfTheWeb(t *testing.T) {
	t.Parallel()
	var loads atomic.Int32
	var version atomic.Value
	version.Store(zipped(t, map[string]string{"x": "one"}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := version.Load().(string)
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text))))
		if r.Method == http.MethodGet {
			loads.Add(1)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
	}))
	defer server.Close()
	j := newJob(t, 2, settings{
		"muster.command": "cat m/x >> out/x && echo own >> m/x", "muster.archive.m": server.URL + "/models/m.zip?token=secret", "muster.output.out": "out",
	})
	results := func() string {
		got := j.files(filepath.Join(j.store, "out"))
		j.must(os.RemoveAll(filepath.Join(j.store, "out")))
		return got["worker-0/x"] + " " + got["worker-1/x"]
	}
	j.run().succeeds(t)
	if got, n := results(), loads.Load(); got != "one one" || n != 1 {
		t.Errorf("got %q with %d loads, want each its own with one", got, n)
	}
	j.app += "b"
	j.run().succeeds(t)
	if got, n := results(), loads.Load(); got != "one one" || n != 1 {
		t.Errorf("again: got %q with %d loads", got, n)
	}
	version.Store(zipped(t, map[string]string{"x": "two"}))
	j.app += "c"
	j.run().succeeds(t)
	if got, n := results(), loads.Load(); got != "two two" || n != 2 {
		t.Errorf("another version: got %q with %d loads", got, n)
	}
	if strings.Contains(j.log("worker-0"), "secret") {
		t.Error("the log has the token of the URL")
	}
}
