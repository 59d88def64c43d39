package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/tests/need"
)

// The agent works in a folder that is closed to the process's user. A definition names a file there by the agent's own
// links of /proc, or from that folder on.
func TestAttackThroughTheAgentsOwnFolder(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	closed := filepath.Join(top, "closed", "in")
	link := filepath.Join(top, "link")
	err := errors.Join(os.Chmod(filepath.Dir(top), 0o711), os.Chmod(top, 0o711), os.MkdirAll(closed, 0o755),
		os.Chmod(filepath.Dir(closed), 0o700), os.WriteFile(filepath.Join(closed, "f"), []byte("secret"), 0o644),
		os.Symlink("/proc/self/cwd/f", link))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(closed)
	a := Admission{Work: t.TempDir(), Root: plan.RootHost, User: As(&plan.UserFacts{UID: 64001, GID: 64001})}
	if err := a.User.ViewHost(top, func(tree fs.FS) error {
		if text, err := fs.ReadFile(tree, "link"); err == nil {
			t.Errorf("checkpoint: got %q", text)
		}
		if info, err := fs.Stat(tree, "link"); err == nil {
			t.Errorf("checkpoint: the link has %d bytes", info.Size())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"f", "/proc/self/cwd/f", link} {
		if text, err := a.Read(path, 100); err == nil {
			t.Errorf("secret from %s: got %q", path, text)
		}
		s, at, err := a.Open(path, false)
		if err != nil {
			continue
		}
		if c, err := s.Open(t.Context(), at, store.Position{}); err == nil {
			t.Errorf("store: opened %s, %v", path, c.Close())
		}
		if info, err := s.Stat(t.Context(), at); err == nil {
			t.Errorf("store: %s has %d bytes", path, info.Size)
		}
	}
}

// A path of a definition is relative to the agent's folder, for a user with rights of its own as for the agent's. Who
// may not read the file is named, with what would do.
func TestReadForAnotherUser(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	err := errors.Join(os.Chmod(filepath.Dir(top), 0o711), os.Chmod(top, 0o711),
		os.WriteFile(filepath.Join(top, "open"), []byte("words"), 0o644),
		os.WriteFile(filepath.Join(top, "closed"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(top)
	a := Admission{Work: t.TempDir(), Root: plan.RootHost, User: As(&plan.UserFacts{UID: 64001, GID: 64001})}
	if text, err := a.Read("open", 100); err != nil || text != "words" {
		t.Errorf("got %q, %v", text, err)
	}
	_, err = a.Read("closed", 100)
	for _, want := range []string{"uid 64001", "closed: permission denied: let it read the file, let the operator write " + `{"version": 1, "secret_files": ["` + filepath.Join(top, "closed") + `"]}`} {
		if !fault.Is(err, registry.ClassNotPermitted) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for entry, want := range map[string]bool{filepath.Join(top, "closed"): true, top + "/*": true, top: false, filepath.Join(top, "open"): false} {
		a.Policy.SecretFiles = []string{entry}
		if _, err := a.Read("closed", 100); (err == nil) != want {
			t.Errorf("with %s among the secret files: %v", entry, err)
		}
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	a.Policy.SecretFiles = []string{top + "/*"}
	if _, err := a.Read("link", 100); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a link out of the folder of secret files: %v", err)
	}
}
