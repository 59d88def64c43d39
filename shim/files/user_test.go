package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/need"
)

func TestOwnAll(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for _, path := range []string{filepath.Join(dir, "a", "b"), outside} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	shared, name := filepath.Join(outside, "file"), filepath.Join(dir, "hard")
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(shared, name); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := As(&plan.UserFacts{UID: 4242, GID: 4243}).OwnAll(root); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]uint32{dir: 4242, filepath.Join(dir, "a", "b"): 4242, filepath.Join(dir, "link"): 4242, outside: 0, shared: 0} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d, want %d", path, got, want)
		}
	}
}
