package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
)

// Between the listing, which is checked, and the copying, the owner of a folder puts other files under the same paths.
func TestAttackOtherFileUnderListedPath(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"a larger one": func(path string) error { return os.Truncate(path, 1<<30) },
		"one as large": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("other"), 0o600), os.Rename(path+".new", path))
		},
		"a link to another": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder.Lay(t, dir, map[string]string{"code/a": "first"})
			s := local(t)
			top, err := s.Stat(t.Context(), filepath.Join(dir, "code"))
			if err != nil {
				t.Fatal(err)
			}
			found, err := Listing{Store: s}.Tree(t.Context(), top)
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			found[0].Fixed = true
			if err := change(found[0].Path); err != nil {
				t.Fatal(err)
			}
			to, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			err = Transfer{}.Bring(t.Context(), to, Below(filepath.Join(dir, "code"), found))
			if !errors.Is(err, errChanged) {
				t.Errorf("got %v, want %v", err, errChanged)
			}
			if _, err := to.Stat("a"); err == nil {
				t.Error("it was brought")
			}
		})
	}
}
