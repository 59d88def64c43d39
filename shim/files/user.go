package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/muster-agent/muster/shim/plan"
)

// User is for whom files are handled. The zero value is the agent's own user.
type User struct{ facts *plan.UserFacts }

// As is the user that an app's process runs as; nil is the agent's own.
func As(facts *plan.UserFacts) User { return User{facts} }

// another tells whether the user differs from the agent's in a way that the agent can act on.
func (u User) another() bool { return u.facts != nil && os.Geteuid() == 0 }

// Below opens a folder of the host for this user. Nothing that is done through it leaves it.
func (u User) Below(dir string) (Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("folder: %w", err)
	}
	return Folder{root, u}, nil
}

// Make is Below of a folder that the agent makes, with those above it, if need be.
func (u User) Make(dir string) (Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Folder{}, fmt.Errorf("make folder: %w", err)
	}
	return u.Below(dir)
}

// Own makes one file or folder the user's. A link is not followed.
func (u User) Own(folder *os.Root, name string) error {
	if !u.another() {
		return nil
	}
	return folder.Lchown(name, u.facts.UID, u.facts.GID)
}

// OwnAll makes a folder and all in it the user's. Links are not followed. A file that has another name elsewhere keeps
// its owner: that name may be one of the host's.
func (u User) OwnAll(folder *os.Root) error {
	if !u.another() {
		return nil
	}
	return fs.WalkDir(folder.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		info, err := folder.Lstat(path)
		if err == nil && hasOtherNames(info) {
			return nil
		}
		if err == nil {
			err = u.Own(folder, path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give to uid %d: %w", u.facts.UID, err)
		}
		return nil
	})
}

func hasOtherNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 && st.Nlink > 1
}

// Shut is the first folder on the way into dir that the user may not pass through, "" when there is none.
func (u User) Shut(dir string) string {
	if !u.another() {
		return ""
	}
	shut := ""
	_ = u.Do(func() error { // without the user's rights nothing is known to be shut: the start says what is
		for at := dir; at != "/" && at != "."; at = filepath.Dir(at) {
			if _, err := os.Stat(at + "/."); errors.Is(err, fs.ErrPermission) {
				shut = at
			}
		}
		return nil
	})
	return shut
}
