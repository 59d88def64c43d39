package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
)

// User is for whom files are handled. The zero value is the agent's own user.
type User struct{ facts *plan.UserFacts }

// As is the user that an app's process runs as; nil is the agent's own.
func As(facts *plan.UserFacts) User { return User{facts} }

// another tells whether the user differs from the agent's in a way that the agent can act on.
func (u User) another() bool { return u.facts != nil && os.Geteuid() == 0 }

// Below opens a folder of the host. Nothing that is done through it leaves it.
func Below(dir string) (Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("folder: %w", err)
	}
	return Folder{root}, nil
}

// Own makes one file or folder the user's. A link is not followed.
func (u User) Own(folder *os.Root, name string) error {
	if !u.another() {
		return nil
	}
	return folder.Lchown(name, u.facts.UID, u.facts.GID)
}

// walk calls do for all below a folder that is not too deep. Links are not followed, and what is removed meanwhile is
// left out.
func walk(folder *os.Root, do func(path string, info fs.FileInfo) error) error {
	return fs.WalkDir(folder.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err == nil && path == ".":
			return nil
		case err == nil && e.IsDir() && tooDeep(path):
			return fs.SkipDir
		}
		var info fs.FileInfo
		if err == nil {
			info, err = folder.Lstat(path)
		}
		if err == nil {
			err = do(path, info)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// OwnAll makes a folder the user's, and all in it that is its owner's. A file that has another name elsewhere keeps its
// owner, and so does one of a third user: a process may have moved it here from a folder of the host that it may write
// to. What is too deep keeps its owner too.
func (u User) OwnAll(folder *os.Root) error {
	if !u.another() {
		return nil
	}
	top, err := folder.Lstat(".")
	if err != nil {
		return err
	}
	was := ownerOf(top)
	if was.Uid == uint32(u.facts.UID) && was.Gid == uint32(u.facts.GID) { //nolint:gosec // ids have 32 bits
		return nil
	}
	give := func(info fs.FileInfo) bool { return !hasOtherNames(info) && ownerOf(info).Uid == was.Uid }
	err = walk(folder, func(path string, _ fs.FileInfo) error {
		err := u.ownIf(folder, path, give)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give to uid %d: %w", u.facts.UID, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return u.Own(folder, ".")
}

// ownMade makes the user's what the agent has made in a folder that nobody else may enter.
func (u User) ownMade(folder *os.Root) error {
	if !u.another() {
		return nil
	}
	return walk(folder, func(path string, _ fs.FileInfo) error { return u.Own(folder, path) })
}

// ownIf makes a file the user's if give says so. It is looked at and given as one open file: another one may take its
// name meanwhile.
func (u User) ownIf(folder *os.Root, name string, give func(fs.FileInfo) bool) error {
	file, err := folder.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && give(info) {
		err = unix.Fchownat(int(file.Fd()), "", u.facts.UID, u.facts.GID, unix.AT_EMPTY_PATH)
	}
	return errors.Join(err, file.Close())
}

func ownerOf(info fs.FileInfo) *syscall.Stat_t {
	st, _ := info.Sys().(*syscall.Stat_t) // as Linux has it
	return st
}

func hasOtherNames(info fs.FileInfo) bool {
	return !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 && ownerOf(info).Nlink > 1
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
