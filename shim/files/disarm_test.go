package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// The owner of a file that nobody may execute can let others do so when the agent has gone.
func TestAttackCapabilitiesOfNoProgram(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const attribute = "security.capability"
	// version 2, effective, CAP_SETUID permitted: see vfs_cap_data in linux/capability.h
	value := []byte{1, 0, 0, 2, 1 << 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for name, mode := range map[string]os.FileMode{"program": 0o755, "none": 0o644, "shut": 0} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), unix.Setxattr(path, attribute, value, 0),
			os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Disarm(root, nil); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"program", "none", "shut"} {
		size, err := unix.Getxattr(filepath.Join(dir, name), attribute, nil)
		if !errors.Is(err, unix.ENODATA) {
			t.Errorf("%s: got %d bytes of %s, %v, want none", name, size, attribute, err)
		}
	}
}
