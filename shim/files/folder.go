package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/store"
)

// Folder is a folder of the host, in which the agent uses its own rights. What lies in it belongs to processes that may
// be anybody's: of an earlier life of an instance, or alive, of another instance with the same user. So no file in it
// is reached by its whole path: a link there would lead an agent that is root elsewhere.
type Folder struct{ *os.Root }

// Rel is an absolute path as a name in the folder.
func (f Folder) Rel(path string) (string, error) { return relative(f.Name(), path) }

func relative(dir, path string) (string, error) {
	name, err := filepath.Rel(dir, path)
	if err == nil && !filepath.IsLocal(name) {
		err = fmt.Errorf("%s is not in the folder %s", path, dir)
	}
	return name, err
}

// Make makes the folder at an absolute path, and those above it, and opens it. A link on the way is refused: each
// element is opened in the one before it, so that even one which appears meanwhile leads to nothing but what its owner
// has.
func (f Folder) Make(path string) (*os.Root, error) {
	name, err := f.Rel(path)
	if err != nil {
		return nil, err
	}
	return makeIn(f.Root, name)
}

func makeIn(root *os.Root, name string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for element := range strings.SplitSeq(name, "/") {
		next, err := enter(at, element)
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, fmt.Errorf("make folder %s: %w", filepath.Join(root.Name(), name), err)
		}
		at = next
	}
	return at, nil
}

func enter(at *os.Root, element string) (*os.Root, error) {
	err := at.Mkdir(element, 0o755)
	if errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = at.Lstat(element); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a %s, want a folder: remove it", element, store.KindOf(info.Mode()))
		}
	}
	if err != nil {
		return nil, err
	}
	return at.OpenRoot(element)
}

// Filled is the name of what Replace has written, in the folder that it is written in.
const Filled = "whole"

// Unfinished begins the name of the folder beside a name in which Replace has Filled written.
const Unfinished = ".stage-"

// Replace has Filled written in a folder beside an instance's that nobody else may enter, dir by its path. When that is
// complete it is the instance's user's, and gets its name in the instance's folder, in the place of what has that name.
func (f Folder) Replace(in UserFolder, name string, fill func(tmp *os.Root, dir string) error) (err error) {
	tmp := Unfinished + filepath.Base(in.Name()) // one agent has this index: what is there is of one that was killed
	if err := errors.Join(f.RemoveAll(tmp), f.Mkdir(tmp, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.RemoveAll(tmp)) }()
	folder, err := f.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := fill(folder, filepath.Join(f.Name(), tmp)); err != nil {
		return err
	}
	if err := in.user.ownMade(folder); err != nil {
		return err
	}
	return in.take(folder, name)
}

// take gives what is Filled in the folder tmp its name. The folder above that name is opened and kept: its process may
// put a link in its place meanwhile.
func (f UserFolder) take(tmp *os.Root, name string) (err error) {
	above, err := f.Make(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, above.Close()) }()
	if err := above.Clear(filepath.Base(name)); err != nil {
		return err
	}
	to, err := above.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	from, err := tmp.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	err = unix.Renameat(int(from.Fd()), Filled, int(to.Fd()), filepath.Base(name))
	if err != nil {
		return &fs.PathError{Op: "rename", Path: filepath.Join(f.name, name), Err: err}
	}
	return nil
}

// WriteHere writes a file that lies directly in the folder, in the place of what has its name.
func (f Folder) WriteHere(name, text string) error { return writeHere(f.Root, name, text, 0o644) }

func writeHere(f *os.Root, name, text string, mode fs.FileMode) error {
	tmp := name + ".new"
	if err := f.RemoveAll(tmp); err != nil {
		return err
	}
	file, err := f.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return f.Rename(tmp, name)
}

// reopen lets the owner of a folder write to it again. One that is not this user's stays: what is done next says so.
func reopen(folder *os.Root) {
	if info, err := folder.Stat("."); err == nil {
		_ = folder.Chmod(".", info.Mode().Perm()|0o700)
	}
}

// removeClosed removes a name, and folders that an earlier process of this user has closed to itself (chmod a-w).
func removeClosed(folder *os.Root, name string) error {
	err := folder.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	reopen(folder)
	_ = fs.WalkDir(folder.FS(), name, func(path string, e fs.DirEntry, err error) error {
		if e == nil || !e.IsDir() {
			return nil
		}
		if err != nil || tooDeep(path) {
			return fs.SkipDir
		}
		_ = folder.Chmod(path, 0o700)
		return nil
	})
	return folder.RemoveAll(name)
}

// CopyIn makes Filled a copy of a regular file of the host. The definition named the file.
func CopyIn(tmp *os.Root, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return fault.Definition(err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	info, err := source.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: got a %s, want a file", from, store.KindOf(info.Mode()))
	}
	if err != nil {
		return fault.Definition(err)
	}
	to, err := tmp.OpenFile(Filled, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, source)
	return errors.Join(err, to.Close())
}

// Read reads a small regular file of the folder. Its process may put something else in its place at any moment: a pipe
// that nobody fills must not hold the agent up.
func (f Folder) Read(name string, most int64) (string, error) {
	path := filepath.Join(f.Name(), name)
	if info, err := f.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s: %w", path, ErrNotPlain))
	}
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return readSmall(file, path, most)
}

// Names are those of at most so many of the folder's files and folders, in no order.
func (f Folder) Names(most int) ([]string, error) {
	dir, err := f.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
