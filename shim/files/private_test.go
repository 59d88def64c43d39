package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// Above root's own folder is one in which another user can put another in its place, or a link that is another's.
func TestAttackFolderIsReplaced(t *testing.T) {
	need.Root(t)
	const stranger = 64001
	above := func(uid int, mode os.FileMode) string {
		dir := filepath.Join(t.TempDir(), "above")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, mode), os.Chown(dir, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	in := func(dir, name string) string {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	link := func(uid int, to string) string {
		path := filepath.Join(above(0, 0o755), "link")
		if err := errors.Join(os.Symlink(to, path), os.Lchown(path, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	safe := in(above(0, 0o755), "w")
	for name, tt := range map[string]struct {
		dir  string
		fine bool
	}{
		"root's":                       {safe, true},
		"in a shared sticky folder":    {in(above(0, 0o777|os.ModeSticky), "w"), true},
		"by root's link":               {link(0, safe), true},
		"in a folder open to all":      {in(above(0, 0o777), "w"), false},
		"in another's sticky folder":   {in(above(stranger, 0o777|os.ModeSticky), "w"), false},
		"in root's, in another's":      {in(above(stranger, 0o755), "roots/w"), false},
		"by another's link":            {link(stranger, safe), false},
		"by another's link on the way": {filepath.Join(link(stranger, filepath.Dir(safe)), "w"), false},
	} {
		if err := Private(tt.dir); (err == nil) != tt.fine {
			t.Errorf("%s: %s: got %v, want it taken: %t", name, tt.dir, err, tt.fine)
		}
	}
}
