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
)

func TestOpenReadsTheSamePackageFromFolderZipAndTar(t *testing.T) {
	files := map[string]string{"metainfo.json": "{}", "package/files/train.py": "print(1)\n"}
	dir := t.TempDir()
	for name, text := range files {
		mustWrite(t, filepath.Join(dir, "app", name), text)
	}
	mustWrite(t, filepath.Join(dir, "app.zip"), zipOf(t, files))
	mustWrite(t, filepath.Join(dir, "app.tar.gz"), tarOf(t, files, nil))
	for _, name := range []string{"app", "app.zip", "app.tar.gz", "file:" + "app.zip"} {
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
				if err := Unpack(p, out); err != nil {
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
		"app.rar": "want a folder or one of", "torn.zip": "not a valid zip", "none": "no such file",
	} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", name, err, want)
		}
	}
}

func TestUnpackLeavesNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	src := fstest.MapFS{"a": {Data: []byte("a")}, "pipe": {Mode: fs.ModeNamedPipe}}
	if err := Unpack(src, filepath.Join(dir, "package")); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Fatalf("got %v, want an error that names pipe", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func FuzzUntar(f *testing.F) {
	f.Add([]byte(tarOf(f, map[string]string{"a/b": "x"}, map[string]string{"a/c": "b"})))
	f.Add([]byte(tarOf(f, map[string]string{"../b": "x"}, nil)))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		inside := filepath.Join(dir, "inside")
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(archive))
		if err != nil {
			return
		}
		_ = untar(tar.NewReader(z), inside)
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Fatalf("something escaped: %v", left)
		}
	})
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
