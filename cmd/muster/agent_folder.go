package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
)

// The folders of a run lie in the work folder, whose own entries nobody but the agent's user may change. What is in
// them belongs to processes that may be anybody's: of an earlier life of this index, or alive, of another instance with
// the same user. So nothing is reached by its whole path: a link there would lead an agent that is root elsewhere.

// workRoot is the work folder; nothing that is done through it leaves it.
type workRoot struct{ *os.Root }

func openWork(dir string) (workRoot, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return workRoot{}, fmt.Errorf("work folder: %w", err)
	}
	return workRoot{root}, nil
}

// name is an absolute path as one from the work folder on.
func (w workRoot) name(path string) (string, error) {
	name, err := filepath.Rel(w.Name(), path)
	if err == nil && !filepath.IsLocal(name) {
		err = fmt.Errorf("%s is not in the work folder %s", path, w.Name())
	}
	return name, err
}

// folder makes a folder, and those above it, and opens it. A link on the way is refused: each element is opened in the
// one before it, so that even one which appears meanwhile leads to nothing but what its owner has.
func (w workRoot) folder(path string) (*os.Root, error) {
	name, err := w.name(path)
	if err != nil {
		return nil, err
	}
	at, err := w.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for element := range strings.SplitSeq(name, "/") {
		next, err := enter(at, element)
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, fmt.Errorf("make folder %s: %w", path, err)
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
			err = fmt.Errorf("%s is a %s, want a folder: remove it", element, kindOf(info.Mode()))
		}
	}
	if err != nil {
		return nil, err
	}
	return at.OpenRoot(element)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode.IsRegular():
		return "file"
	}
	return "device, pipe or socket"
}

// stage puts an item in the place of what its name holds.
func (w workRoot) stage(item plan.StageItem) error {
	name, err := w.name(item.To)
	if err != nil {
		return err
	}
	above, err := w.folder(filepath.Dir(item.To))
	if err != nil {
		return err
	}
	if err := above.Close(); err != nil {
		return err
	}
	if item.Kind == plan.StagePackage {
		target, err := filepath.Rel(filepath.Dir(item.To), item.From)
		if err != nil {
			return err
		}
		return errors.Join(w.RemoveAll(name), w.Symlink(target, name))
	}
	if item.Kind == plan.StageFile {
		return w.copyFile(item, name)
	}
	if item.Kind == plan.StageLibrary {
		return slidershell.LayOut(w.Root, name)
	}
	return w.copy(item, name)
}

// copy writes an item in a folder that nobody else may enter, and moves it to its name when it is whole.
func (w workRoot) copy(item plan.StageItem, name string) (err error) {
	return w.replace(name, func(_ *os.Root, dir string) error { return w.fill(item, filepath.Join(filepath.Base(dir), wholeName)) })
}

// wholeName is what is filled in such a folder.
const wholeName = "whole"

// wholeIn makes it as a folder.
func wholeIn(tmp *os.Root) (*os.Root, error) {
	if err := tmp.Mkdir(wholeName, 0o755); err != nil {
		return nil, err
	}
	return tmp.OpenRoot(wholeName)
}

// replace has something written as whole in a folder that nobody else may enter, dir by its path, and moves it to its name in the work folder,
// in the place of what that holds.
func (w workRoot) replace(name string, fill func(tmp *os.Root, dir string) error) (err error) {
	first, _, _ := strings.Cut(name, "/")
	tmp := ".stage-" + first // one agent has this index: what is there is of one that was killed
	if err := errors.Join(w.RemoveAll(tmp), w.Mkdir(tmp, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.RemoveAll(tmp)) }()
	folder, err := w.OpenRoot(tmp)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(folder, filepath.Join(w.Name(), tmp)), folder.Close()); err != nil {
		return err
	}
	if err := w.RemoveAll(name); err != nil {
		return err
	}
	return w.Rename(filepath.Join(tmp, wholeName), name)
}

// fill makes the folder whole of what an item holds: a folder's files, or an archive's as they lie in it.
func (w workRoot) fill(item plan.StageItem, whole string) error {
	to := filepath.Join(w.Name(), whole)
	if item.Kind == plan.StageTarball || item.Kind == plan.StageZip {
		if _, err := packages.Extract(context.Background(), item.From, to, packages.ExtractOptions{Name: item.Name}); err != nil {
			return fault.Definition(err)
		}
		return nil
	}
	if _, err := os.Stat(item.From); err != nil {
		return fault.Definition(err)
	}
	if err := w.Mkdir(whole, 0o755); err != nil {
		return err
	}
	return packages.Copy(os.DirFS(item.From), to)
}

// copyFile brings one file of the package into the place of what its name holds.
func (w workRoot) copyFile(item plan.StageItem, name string) (err error) {
	from, err := os.Open(item.From)
	if err != nil {
		return fault.Definition(err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	info, err := from.Stat()
	if err != nil {
		return fault.Definition(err)
	}
	if !info.Mode().IsRegular() {
		return fault.Definition(fmt.Errorf("%s: got a %s, want a file", item.From, kindOf(info.Mode())))
	}
	if err := w.RemoveAll(name); err != nil {
		return err
	}
	to, err := w.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// writeWhole writes a file of a process's own folder, in the place of what its name holds. Only its owner may read one
// that is private.
func (w workRoot) writeWhole(path, text string, private bool, owner *plan.UserFacts) error {
	folder, err := w.folder(filepath.Dir(path))
	if err == nil {
		err = errors.Join(replaceFile(folder, filepath.Base(path), text, private, owner), folder.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replaceFile(folder *os.Root, name, text string, private bool, owner *plan.UserFacts) error {
	tmp, mode := name+".new", fs.FileMode(0o644)
	if private {
		mode = 0o600
	}
	if err := folder.RemoveAll(tmp); err != nil {
		return err
	}
	f, err := folder.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if owner != nil && os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(owner.UID, owner.GID))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return folder.Rename(tmp, name)
}

// giveTo makes a folder and all in it the user's. Links are not followed, and a file that has another name elsewhere
// stays whose it is: that name may be one of the host's.
func giveTo(u *plan.UserFacts, folder *os.Root) error {
	if u == nil || os.Geteuid() != 0 {
		return nil
	}
	return fs.WalkDir(folder.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was somebody's for a moment
		}
		if err != nil {
			return err
		}
		info, err := folder.Lstat(path)
		if err == nil && sharesFile(info) {
			return nil
		}
		if err == nil {
			err = folder.Lchown(path, u.UID, u.GID)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give to uid %d: %w", u.UID, err)
		}
		return nil
	})
}

func sharesFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 && st.Nlink > 1
}
