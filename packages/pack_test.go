package packages

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// packable are the files of a small package: name to text; a text that begins with -> is a link, a name that ends in /
// an empty folder.
func packable() map[string]string {
	files := map[string]string{
		"metainfo.json": "{}", "package/files/train.py": "print(1)\n", "package/files/run.sh": "#!/bin/sh\n",
		"package/files/größe.txt": "ü", "package/empty/": "", "package/latest": "->files/train.py", "a.txt": "a", "a/b": "b", "A": "",
	}
	for i := range 30 {
		files[fmt.Sprintf("package/data/%02d.csv", i)] = strings.Repeat(fmt.Sprint(i, ","), i*97)
	}
	return files
}

// TestPackGivesTheSameBytes makes the same files in another order, at other times, under another umask.
func TestPackGivesTheSameBytes(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	for _, ending := range []string{".zip", ".tar.gz", ".tgz", ".tar.zst"} {
		t.Run(ending, func(t *testing.T) {
			first := ""
			for round, umask := range []int{0o022, 0o077, 0o002, 0} {
				unix.Umask(umask)
				dir := t.TempDir()
				shuffled(t, filepath.Join(dir, "app"), uint64(round))
				file := filepath.Join(dir, "out"+ending)
				packed, err := Pack(filepath.Join(dir, "app"), file, PackOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if first == "" {
					first = packed.Digest
				}
				if packed.Digest != first {
					t.Errorf("round %d: got sha256 %s, want %s as before", round, packed.Digest, first)
				}
				opened, err := Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer opened.Close()
				if info, err := os.Stat(file); err != nil || info.Size() != packed.Bytes || opened.Digest != packed.Digest {
					t.Errorf("got %d bytes of %s, %v; want %d of %s", info.Size(), opened.Digest, err, packed.Bytes, packed.Digest)
				}
			}
		})
	}
}

// shuffled writes packable files into dir in the order and with the times that seed gives.
func shuffled(t *testing.T, dir string, seed uint64) {
	t.Helper()
	files := packable()
	names := slices.Sorted(maps.Keys(files))
	random := rand.New(rand.NewPCG(seed, 1))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		target, isLink := strings.CutPrefix(files[name], "->")
		mode := fs.FileMode(0o666)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o777
		}
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o777)
		case isLink:
			err = os.Symlink(target, at)
		default:
			err = os.WriteFile(at, []byte(files[name]), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !isLink {
			then := time.Unix(1_500_000_000+random.Int64N(100_000_000), random.Int64N(1e9))
			if err := os.Chtimes(at, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPackWritesFixedEntries(t *testing.T) {
	for _, tt := range []struct {
		name     string
		at       time.Time
		zip, tar time.Time
	}{
		{"no time", time.Time{}, time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0)},
		{"a time", time.Unix(1_700_000_001, 5e8), time.Unix(1_700_000_001, 0), time.Unix(1_700_000_001, 0)},
		{"before zip", time.Unix(100, 0), time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(100, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for ending, want := range map[string]time.Time{".zip": tt.zip, ".tar.gz": tt.tar} {
				dir := t.TempDir()
				shuffled(t, filepath.Join(dir, "app"), 7)
				file := filepath.Join(t.TempDir(), "x"+ending)
				packed, err := Pack(filepath.Join(dir, "app"), file, PackOptions{Time: tt.at})
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, h := range entriesOf(t, file) {
					names = append(names, h.name)
					if !h.at.Equal(want) {
						t.Errorf("%s in %s: got time %s, want %s", h.name, ending, h.at, want)
					}
					if perm := h.mode.Perm(); perm != fixedMode(h.name, h.mode) {
						t.Errorf("%s in %s: got mode %o", h.name, ending, perm)
					}
				}
				if !slices.IsSortedFunc(names, func(a, b string) int { return strings.Compare(strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")) }) {
					t.Errorf("%s: got %v, want them sorted", ending, names)
				}
				files := slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "/") })
				if diff := cmp.Diff(packed.Files, files); diff != "" {
					t.Errorf("%s: files (-got +want):\n%s", ending, diff)
				}
			}
		})
	}
}

func fixedMode(name string, mode fs.FileMode) fs.FileMode {
	switch {
	case mode&fs.ModeSymlink != 0:
		return 0o777
	case strings.HasSuffix(name, "/"), strings.HasSuffix(name, ".sh"):
		return 0o755
	}
	return 0o644
}

// said is what an archive says of one entry.
type said struct {
	name string
	at   time.Time
	mode fs.FileMode
}

func entriesOf(t *testing.T, file string) (out []said) {
	t.Helper()
	if strings.HasSuffix(file, ".zip") {
		r, err := zip.OpenReader(file)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, f := range r.File {
			out = append(out, said{f.Name, f.Modified, f.Mode()})
		}
		return out
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("gzip says name %q and time %s, want neither", z.Name, z.ModTime)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s belongs to %d:%d %q:%q, want nobody", h.Name, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		out = append(out, said{h.Name, h.ModTime, h.FileInfo().Mode()})
	}
}

func TestPackLeavesOut(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"metainfo.json", ".gitignore", "package/a.py", "package/#x", // stay
		".git/HEAD", "package/.svn/entries", "package/__pycache__/a.cpython-311.pyc", "package/old.pyc", "package/a.py~",
		"package/.a.py.swp", "package/#a.py#", "package/.DS_Store", "dist/app.zip", "dist/app.zip.minisig", "dist/" + unfinished + "1.zip", "package/.muster-lint-x",
	} {
		mustWrite(t, filepath.Join(dir, name), "x")
	}
	if err := os.Symlink("user@host.1234:5678", filepath.Join(dir, "package/.#a.py")); err != nil { // as emacs locks
		t.Fatal(err)
	}
	packed, err := Pack(dir, filepath.Join(dir, "dist/app.zip"), PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packed.Files, []string{".gitignore", "metainfo.json", "package/#x", "package/a.py"}); diff != "" {
		t.Errorf("files (-got +want):\n%s", diff)
	}
	want := []string{
		".git", "dist/" + unfinished + "1.zip", "dist/app.zip", "dist/app.zip.minisig", "package/#a.py#", "package/.#a.py", "package/.DS_Store",
		"package/.a.py.swp", "package/.muster-lint-x", "package/.svn", "package/__pycache__", "package/a.py~", "package/old.pyc",
	}
	if diff := cmp.Diff(packed.LeftOut, want); diff != "" {
		t.Errorf("left out (-got +want):\n%s", diff)
	}
}

func TestPackRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, file, want string
		make             func(dir string) error
	}{
		{"a link to the host", "x.tgz", `etc: got a link to "/etc"`, func(dir string) error { return os.Symlink("/etc", dir+"/etc") }},
		{"a link upwards", "x.tgz", `up: got a link to "../.."`, func(dir string) error { return os.Symlink("../..", dir+"/up") }},
		{"a link that leads out through another", "x.tgz", "e: got a link to", func(dir string) error {
			return firstError(os.MkdirAll(dir+"/a/b", 0o755), os.Symlink("a/b", dir+"/d"), os.Symlink("d/../../..", dir+"/e"))
		}},
		{"a named pipe", "x.zip", "pipe: got a named pipe, want files", func(dir string) error { return unix.Mkfifo(dir+"/pipe", 0o600) }},
		{"a name in no encoding", "x.zip", "not UTF-8", func(dir string) error { return os.WriteFile(dir+"/\xff", nil, 0o600) }},
		{"a name that Windows takes apart", "x.zip", `: entry "a\\b": got a backslash in a name`, func(dir string) error { return os.WriteFile(dir+`/a\b`, nil, 0o600) }},
		{"an ending that says nothing", "x.rar", "want a name that ends in one of .zip", nil},
		{"an ending alone", ".zip", "want a name that ends in one of .zip", nil},
		{"a folder that is not there", "none/x.zip", "none/x.zip: no such file", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, out := t.TempDir(), t.TempDir()
			mustWrite(t, filepath.Join(dir, "metainfo.json"), "{}")
			if tt.make != nil {
				if err := tt.make(dir); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Pack(dir, filepath.Join(out, tt.file), PackOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "pack "+dir) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), unfinished) {
				t.Errorf("got %v, want no name of a file that nobody asked for", err)
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestPackReplaces: an archive that was there is whole until the new one is.
func TestPackReplaces(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	file := filepath.Join(out, "app.zip")
	mustWrite(t, filepath.Join(dir, "metainfo.json"), "{}")
	before, err := Pack(dir, file, PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(dir, file, PackOptions{}); err == nil {
		t.Fatal("a pipe was packed")
	}
	p, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if p.Digest != before.Digest {
		t.Errorf("got %s, want the archive as it was: %s", p.Digest, before.Digest)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, "more"), "x")
	if after, err := Pack(dir, file, PackOptions{}); err != nil || after.Digest == before.Digest {
		t.Errorf("got %s, %v, want another archive", after.Digest, err)
	}
}
