package packages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// scratch is a private folder beside a target, on the same file system, so that what is whole in it can be renamed to
// the target. It is held by flock(2): what a killed process left is told from what another is writing.
type scratch struct {
	path string
	held *os.File
}

// newScratch makes one for the target, and removes what others that were killed left for the same target.
func newScratch(target string) (*scratch, error) {
	around := filepath.Dir(target)
	if err := os.MkdirAll(around, 0o755); err != nil {
		return nil, err
	}
	pattern := "." + filepath.Base(target) + ".new-"
	left, err := filepath.Glob(filepath.Join(literal(around), literal(pattern)+"*"))
	if err != nil {
		return nil, err
	}
	for _, path := range left {
		if err := sweep(path); err != nil {
			return nil, err
		}
	}
	for {
		path, err := os.MkdirTemp(around, pattern)
		if err != nil {
			return nil, err
		}
		s, err := hold(path)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		if s != nil {
			return s, os.Mkdir(s.whole(), 0o755)
		}
	}
}

// literal escapes what filepath.Match would read as a pattern.
func literal(path string) string {
	var out []rune
	for _, r := range path {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

// hold locks the folder. nil: somebody else has it, or has removed it already.
func hold(path string) (*scratch, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(mine, now) {
		return nil, f.Close()
	}
	return &scratch{path, f}, nil
}

func sweep(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // gone meanwhile, or not one of ours
	}
	s, err := hold(path)
	if errors.Is(err, os.ErrPermission) { // another user's
		return nil
	}
	if err != nil || s == nil {
		return err
	}
	return s.remove()
}

// whole is the folder that is filled.
func (s *scratch) whole() string { return filepath.Join(s.path, "whole") }

// become renames what is whole to the target. What is there is moved aside first where it may be replaced: a rename
// takes the place of an empty folder alone (rename(2)).
func (s *scratch) become(target string, replace bool) error {
	old := filepath.Join(s.path, "old")
	moved := false
	if replace {
		err := os.Rename(target, old)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		moved = err == nil
	}
	err := syscall.Rename(s.whole(), target) // os.Rename looks first, and takes no folder's place
	if err == nil {
		return nil
	}
	if moved {
		err = errors.Join(err, os.Rename(old, target))
	}
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: %w: it appeared meanwhile; remove it", target, os.ErrExist)
	}
	return fmt.Errorf("rename to %s: %w", target, err)
}

func (s *scratch) remove() error { return errors.Join(os.RemoveAll(s.path), s.held.Close()) }
