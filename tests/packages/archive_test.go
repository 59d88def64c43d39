package packages

import (
	"archive/tar"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/muster-agent/muster/tests/folder"
)

// What GNU tar packs is a package like its folder, however it is compressed.
func TestAppsFromRealArchives(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app"))
	must(t, os.Symlink("x", filepath.Join(dir, "app", "package", "files", "link")))
	must(t, os.Link(filepath.Join(dir, "app", "package", "files", "x"), filepath.Join(dir, "app", "package", "files", "again")))
	for _, c := range []struct {
		name string
		args []string
	}{
		{"gnu.tar", []string{"--format=gnu", "-cf", "gnu.tar", "app"}},
		{"pax.tar", []string{"--format=pax", "-cf", "pax.tar", "-C", "app", "."}},
		{"v7.tar", []string{"--format=v7", "-cf", "v7.tar", "app"}},
		{"app.tar.gz", []string{"-czf", "app.tar.gz", "app"}},
		{"app.tgz", []string{"-czf", "app.tgz", "-C", "app", "."}},
		{"app.tar.zst", []string{"-cf", "app.tar.zst", "app"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tar := exec.CommandContext(t.Context(), "tar", c.args...)
			tar.Dir = dir
			if out, err := tar.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if strings.HasSuffix(c.name, ".zst") {
				compress(t, filepath.Join(dir, c.name))
			}
			work := filepath.Join(folder.Temp(t, "mp-"), "w")
			stdout, stderr, code := run(t, home(t), dir, "run", c.name, "--engine", "process", "--work-dir", work, "--json")
			if code != 0 || !strings.Contains(stdout, "succeeded") {
				t.Errorf("got %d, %s, %s, want it run", code, stdout, stderr)
			}
		})
	}
}

// compress packs a tar in its place.
func compress(t *testing.T, path string) {
	t.Helper()
	plain, err := os.ReadFile(path)
	must(t, err)
	z, err := zstd.NewWriter(nil)
	must(t, err)
	must(t, os.WriteFile(path, z.EncodeAll(plain, nil), 0o600))
	must(t, z.Close())
}

// A hostile archive ends with 65 and a reason, and what lies around is as before.
func TestHostileApps(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry tar.Header
		want  string
	}{
		{"up.tar", tar.Header{Name: "../escaped", Typeflag: tar.TypeReg}, `entry "../escaped": got a path with .., want a relative path that stays inside`},
		{"absolute.tar", tar.Header{Name: "/tmp/muster-escaped", Typeflag: tar.TypeReg}, "got an absolute path"},
		{"link.tar", tar.Header{Name: "etc", Linkname: "/etc", Typeflag: tar.TypeSymlink}, "want one that stays inside the package"},
		{"device.tar", tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, "got a device, want files, folders and links"},
		{"named.zip", tar.Header{Name: "x", Typeflag: tar.TypeReg}, "the name says zip, the content is tar"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(base, "in"), 0o755))
			f, err := os.Create(filepath.Join(base, "in", c.name))
			must(t, err)
			w := tar.NewWriter(f)
			for _, name := range slices.Sorted(maps.Keys(app())) {
				must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(app()[name]))}))
				_, err := w.Write([]byte(app()[name]))
				must(t, err)
			}
			must(t, w.WriteHeader(&c.entry))
			must(t, w.Close())
			must(t, f.Close())
			before := names(t, base)
			_, stderr, code := run(t, home(t), filepath.Join(base, "in"), "run", c.name, "--engine", "process", "--work-dir", "work")
			if code != 65 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, c.name) {
				t.Errorf("got %d, %q, want 65 with %q", code, stderr, c.want)
			}
			if after := names(t, base); !slices.Equal(before, after) {
				t.Errorf("around it: got %v, want %v", after, before)
			}
			if _, err := os.Lstat("/tmp/muster-escaped"); err == nil {
				t.Error("/tmp/muster-escaped was written")
			}
		})
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	}))
	return all
}
