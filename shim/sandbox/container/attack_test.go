package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// Another user lays out a folder like a container's, with a record that names the cgroup of a third user's process.
func TestAttackForgedRecord(t *testing.T) {
	need.Root(t)
	victim := cgroupOf(t)
	for name, forge := range map[string]func(dir string) error{
		"folder":    func(dir string) error { return os.Chown(dir, 4242, 4242) },
		"above":     func(dir string) error { return os.Chown(filepath.Dir(dir), 4242, 4242) },
		"mark":      func(dir string) error { return os.Lchown(filepath.Join(dir, markName), 4242, 4242) },
		"record":    func(dir string) error { return os.Lchown(filepath.Join(dir, recordName), 4242, 4242) },
		"open mode": func(dir string) error { return os.Chmod(dir, 0o777) }, //nolint:gosec // the attack
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "root", "w-0")
			err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, markName), nil, 0o600), record(dir, []string{victim}), forge(dir))
			if err != nil {
				t.Fatal(err)
			}
			err = Clear(t.Context(), dir)
			if !errors.Is(err, errNotOurs) {
				t.Errorf("got %v, want it refused", err)
			}
			if _, err := os.Stat(victim); err != nil {
				t.Fatalf("the cgroup is removed at the attacker's word: %v", err)
			}
		})
	}
}

// cgroupOf makes a cgroup as another app has it.
func cgroupOf(t *testing.T) string {
	t.Helper()
	for _, top := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		app := filepath.Join(top, "muster", fmt.Sprintf("victim-%d", os.Getpid()))
		dir := filepath.Join(app, "w-0")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() { _, _ = os.Remove(dir), os.Remove(app) })
		return dir
	}
	need.Skip(t, "needs cgroups that can be made")
	return ""
}
