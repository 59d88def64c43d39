package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/muster-agent/muster/tests/need"
)

func TestOpenReadsTheSamePackageFromFolderZipAndTar(t *testing.T) {
	files := map[string]string{"metainfo.json": "{}", "package/files/train.py": "print(1)\n"}
	dir := t.TempDir()
	for name, text := range files {
		mustWrite(t, filepath.Join(dir, "app", name), text)
	}
	mustWrite(t, filepath.Join(dir, "app.zip"), zipOf(t, files))
	mustWrite(t, filepath.Join(dir, "app.tar.gz"), tarOf(t, files, nil))
	inFolder := map[string]string{}
	for name, text := range files {
		inFolder["app/"+name] = text
	}
	mustWrite(t, filepath.Join(dir, "folder", "app.zip"), zipOf(t, inFolder))
	mustWrite(t, filepath.Join(dir, "folder", "app.tgz"), tarOf(t, inFolder, nil))
	for _, name := range []string{"app", "app.zip", "app.tar.gz", "file:" + "app.zip", "folder/app.zip", "folder/app.tgz"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(dir)
			p, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if p.Name != "app" {
				t.Errorf("name: got %s, want app", p.Name)
			}
			out := filepath.Join(t.TempDir(), "package")
			for range 2 { // the second finds it there
				if err := Unpack(p, out, "run 1"); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range files {
				if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != text {
					t.Errorf("%s: got %q, %v, want %q", name, got, err, text)
				}
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	mustWrite(t, "up.zip", zipOf(t, map[string]string{"../up": "x"}))
	mustWrite(t, "up.tgz", tarOf(t, map[string]string{"../up": "x"}, nil))
	mustWrite(t, "link.tgz", tarOf(t, nil, map[string]string{"etc": "/etc"}))
	mustWrite(t, "app.rar", "x")
	mustWrite(t, "torn.zip", "PK")
	for name, want := range map[string]string{
		"up.zip": "relative path", "up.tgz": "relative path", "link.tgz": "stays inside",
		"app.rar": "pack it as one of", "torn.zip": "want an archive", "none": "no such file",
	} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", name, err, want)
		}
	}
}

func TestUnpackLeavesNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	src := fstest.MapFS{"a": {Data: []byte("a")}, "pipe": {Mode: fs.ModeNamedPipe}}
	if err := Unpack(src, filepath.Join(dir, "package"), "run 1"); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Fatalf("got %v, want an error that names pipe", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != ".package.lock" {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func mustWrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func zipOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func tarOf(t testing.TB, files, links map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range links {
		if err := w.WriteHeader(&tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUnpackReplacesThePackageOfAnotherRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "package")
	read := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, step := range []struct{ stamp, text, want string }{
		{"run 1", "old", "old"}, {"run 1", "new", "old"}, {"run 2", "new", "new"},
	} {
		if err := Unpack(fstest.MapFS{"a": {Data: []byte(step.text)}}, dir, step.stamp); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != step.want {
			t.Errorf("%s: got %s, want %s", step.stamp, got, step.want)
		}
	}
}

// Who can write into a work folder before the agent could lay a package there with the stamp of the run to come.
func TestUnpackBelievesNoStampOfAnother(t *testing.T) {
	need.Root(t)
	const other = 4242
	src := fstest.MapFS{"a": {Data: []byte("signed")}}
	for _, of := range []string{"package", ".package.stamp"} {
		work := t.TempDir()
		mustWrite(t, filepath.Join(work, "package", "a"), "evil")
		mustWrite(t, filepath.Join(work, ".package.stamp"), "run 1")
		must(t, os.Chown(filepath.Join(work, of), other, other))
		must(t, Unpack(src, filepath.Join(work, "package"), "run 1"))
		if text, err := os.ReadFile(filepath.Join(work, "package", "a")); err != nil || string(text) != "signed" {
			t.Errorf("%s of another: got %q, %v, want what was unpacked", of, text, err)
		}
	}
	work := t.TempDir()
	precious := filepath.Join(t.TempDir(), "precious")
	mustWrite(t, precious, "precious")
	must(t, os.Symlink(precious, filepath.Join(work, ".package.stamp")))
	must(t, Unpack(src, filepath.Join(work, "package"), "run 1"))
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("got %q, %v: a link was written through", text, err)
	}
	must(t, os.Remove(filepath.Join(work, ".package.lock")))
	must(t, os.Symlink(precious, filepath.Join(work, ".package.lock")))
	if err := Unpack(src, filepath.Join(work, "package"), "run 2"); err == nil {
		t.Error("a link was taken for the lock")
	}
}

func TestUnpackLeavesTheWorkFolderOut(t *testing.T) {
	app := t.TempDir()
	mustWrite(t, filepath.Join(app, "metainfo.json"), "{}")
	mustWrite(t, filepath.Join(app, "w", "log", "x"), "x")
	if err := Unpack(os.DirFS(app), filepath.Join(app, "w", "package"), "run 1"); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(filepath.Join(app, "w", "package"))
	if err != nil || len(names) != 1 || names[0].Name() != "metainfo.json" {
		t.Errorf("got %v, %v, want metainfo.json alone", names, err)
	}
	if err := Unpack(os.DirFS(app), filepath.Join(app, "package"), "run 1"); err == nil || !strings.Contains(err.Error(), "name another") {
		t.Errorf("work folder = package folder: got %v, want it refused", err)
	}
}

func TestRoomCannotOverflow(t *testing.T) {
	for _, sizes := range [][]int64{{-1}, {maxBytes + 1}, {maxBytes, 1}, {1 << 62, 1 << 62}} {
		var r room
		var err error
		for _, size := range sizes {
			if err = r.take(size); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%v: got no error", sizes)
		}
	}
}
