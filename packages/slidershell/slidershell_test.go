package slidershell

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestAllSourcesAreEmbedded(t *testing.T) {
	want := readTree(t, os.DirFS("python"))
	maps.DeleteFunc(want, func(name, _ string) bool { return !strings.HasSuffix(name, ".py") })
	got := readTree(t, library())
	if !maps.Equal(got, want) {
		t.Errorf("got %q,\nwant %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if _, ok := got["resource_management/__init__.py"]; !ok || len(got) < 20 {
		t.Errorf("got %d files, no resource_management/__init__.py at the top", len(got))
	}
}

func TestLayOut(t *testing.T) {
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	if err := os.MkdirAll(filepath.Join(dir, "lib/resource_management/core"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, stale := range []string{"lib/stale.py", "lib/resource_management/core/base.py"} {
		if err := os.WriteFile(filepath.Join(dir, stale), []byte("raise SystemExit(3)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := LayOut(root, "lib"); err != nil {
			t.Fatal(err)
		}
		got, want := readTree(t, os.DirFS(filepath.Join(dir, "lib"))), readTree(t, library())
		if !maps.Equal(got, want) {
			t.Fatalf("got %q,\nwant %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	checkModes(t, filepath.Join(dir, "lib"))
	importIt(t, filepath.Join(dir, "lib"))
}

func TestLayOutStaysInRoot(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for _, dir := range []string{"../lib", "gone/lib"} {
		if err := LayOut(root, dir); err == nil || !strings.Contains(err.Error(), "lay out slidershell "+dir) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

// importIt imports every module, in an interpreter that knows nothing but its own library and ours.
func importIt(t *testing.T, lib string) {
	t.Helper()
	modules := []string{}
	for name := range readTree(t, library()) {
		module := strings.TrimSuffix(strings.TrimSuffix(name, ".py"), "/__init__")
		modules = append(modules, strings.ReplaceAll(module, "/", "."))
	}
	cmd := exec.Command("python3", "-S", "-s", "-W", "error", "-c",
		"import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)")
	cmd.Args = append(cmd.Args, modules...)
	cmd.Env = []string{"PYTHONPATH=" + lib, "PYTHONDONTWRITEBYTECODE=1", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		if !strings.HasPrefix(line, lib+"/resource_management/") {
			t.Errorf("imported %s, want what was laid out", line)
		}
	}
}

func readTree(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = 0o755
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
