package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/muster-agent/muster/shim/store"
)

// Store is the files of one cluster, as one user. Its errors are *store.Error. It is for any number of goroutines.
type Store struct {
	cluster  *cluster
	patience time.Duration
	notice   func(string)
}

// URL is a path of this store as it is written elsewhere.
func (s *Store) URL(path string) string { return s.cluster.url(path) }

// User is the client's user; empty with Kerberos, where the ticket names it.
func (s *Store) User() string { return s.cluster.who.user }

// explain makes a *store.Error of an error about a path.
func (s *Store) explain(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*store.Error](err); ok {
		if waited := errors.Is(err, store.ErrWaited); waited && !errors.Is(inner.Err, store.ErrWaited) {
			return &store.Error{
				Op: op, URL: s.URL(path), Hint: inner.Hint, Err: fmt.Errorf("%w, %w", inner.Err, store.ErrWaited),
			}
		}
		return &store.Error{Op: op, URL: s.URL(path), Hint: inner.Hint, Err: inner.Err}
	}
	return &store.Error{Op: op, URL: s.URL(path), Hint: hint(err), Err: err}
}

// call asks a NameNode, and again as long as the answer may change soon.
func (s *Store) call(ctx context.Context, op, path string, ask func(l *link) error) error {
	return s.explain(op, path, s.patiently(ctx, op, path, func() error { return s.once(ctx, ask) }))
}

// once asks on a connection of its own.
func (s *Store) once(ctx context.Context, ask func(l *link) error) error {
	l, err := s.cluster.take(ctx, s.cluster.calls)
	if err != nil {
		return err
	}
	defer s.cluster.give(l, s.cluster.calls)
	return s.guarded(ctx, l, ask)
}

// guarded uses a connection until ctx ends. One on which anything but an answer came is not used again: an answer that
// is late would be taken for another's.
func (s *Store) guarded(ctx context.Context, l *link, ask func(l *link) error) error {
	stop := context.AfterFunc(ctx, l.wires.close)
	l.wires.said() // of earlier questions
	err := ask(l)
	if !stop() {
		l.broken = true
		return context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	if _, answered := remote(err); !answered && !plain(err) {
		l.broken = true
		if node, lost := errors.AsType[*nodeError](err); lost && node.node == nameNode {
			s.cluster.drop()
		}
	}
	return meaning(err, l.wires.said())
}

// plain tells an answer that the library has made an error of its own of.
func plain(err error) bool {
	for _, known := range []error{os.ErrNotExist, os.ErrPermission, os.ErrExist, os.ErrInvalid, syscall.ENOTEMPTY} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// waits are those between two tries.
var waits = store.Backoff{First: 200 * time.Millisecond, Longest: 3 * time.Second}

// patiently does something until it is done, fails for good, or the store's patience ends.
func (s *Store) patiently(ctx context.Context, op, path string, do func() error) error {
	begun := time.Now()
	for failed := 1; ; failed++ {
		err := do()
		if err == nil || !transient(err) || ctx.Err() != nil {
			if ctx.Err() != nil && err != nil {
				return context.Cause(ctx)
			}
			return err
		}
		if time.Since(begun) > s.patience {
			return fmt.Errorf("%w, %w for %s", err, store.ErrWaited, time.Since(begun).Round(100*time.Millisecond))
		}
		if failed == 2 && s.notice != nil { // the first may be a connection that had ended by itself
			s.notice(fmt.Sprintf("%s %s: %v: waiting for up to %s", op, s.URL(path), err, s.patience))
		}
		if err := waits.Wait(ctx, failed-1); err != nil {
			return err
		}
	}
}

// Stat describes a file or folder.
func (s *Store) Stat(ctx context.Context, path string) (store.Info, error) {
	info, err := s.stat(ctx, path)
	if err != nil {
		return store.Info{}, s.explain("stat", path, err)
	}
	return describe(path, info), nil
}

func (s *Store) stat(ctx context.Context, path string) (info os.FileInfo, err error) {
	err = s.patiently(ctx, "stat", path, func() error {
		return s.once(ctx, func(l *link) (err error) {
			info, err = l.Stat(path)
			return err
		})
	})
	return info, err
}

// Access tells who may write to a folder.
func (s *Store) Access(ctx context.Context, path string) (store.Access, error) {
	info, err := s.stat(ctx, path)
	if err != nil {
		return store.Access{}, err
	}
	access := store.Access{Mode: uint32(info.Mode() & 0o1777)}
	if status, ok := info.Sys().(*client.FileStatus); ok {
		access.Owner = status.GetOwner()
	}
	return access, nil
}

// describe puts the file's number into the validator: a file that replaces another has another number.
func describe(path string, info os.FileInfo) store.Info {
	i := store.Info{Path: path, Size: info.Size(), ModTime: info.ModTime(), Dir: info.IsDir()}
	if i.Dir {
		i.Size = 0
		return i
	}
	id := uint64(0)
	if status, ok := info.Sys().(*client.FileStatus); ok {
		id = status.GetFileId()
	}
	i.Validator = fmt.Sprintf("%d-%d-%d", id, info.Size(), info.ModTime().UnixMilli())
	return i
}

// List gives what lies directly in a folder, sorted by path. The library asks for as much at a time as the NameNode
// gives.
func (s *Store) List(ctx context.Context, dir string) ([]store.Info, error) {
	var all []store.Info
	err := s.call(ctx, "list", dir, func(l *link) error {
		f, err := l.Client.Open(dir)
		if err != nil {
			return err
		}
		if !f.Stat().IsDir() {
			return errors.Join(&store.Error{Err: fmt.Errorf("got a file: %w", syscall.ENOTDIR)}, f.Close())
		}
		entries, err := f.Readdir(0)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		all = make([]store.Info, len(entries))
		for i, e := range entries {
			all[i] = describe(path.Join(dir, e.Name()), e)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b store.Info) int { return cmp.Compare(a.Path, b.Path) })
	return all, err
}

// MkdirAll makes a folder and those above it; an existing folder is no error.
func (s *Store) MkdirAll(ctx context.Context, path string) error {
	return s.call(ctx, "create", path, func(l *link) error { return s.mkdirAll(l, path) })
}

func (s *Store) mkdirAll(l *link, path string) error {
	return l.MkdirAll(path, 0o777&^s.cluster.conf.umask())
}

// Chmod sets the mode of a file or folder; below: of all that is in it, too.
func (s *Store) Chmod(ctx context.Context, name string, mode fs.FileMode, below bool) error {
	err := s.call(ctx, "chmod", name, func(l *link) error { return l.Client.Chmod(name, mode) })
	if err != nil || !below {
		return err
	}
	info, err := s.Stat(ctx, name)
	if err != nil || !info.Dir {
		return err
	}
	entries, err := s.List(ctx, name)
	for _, e := range entries {
		if err = s.Chmod(ctx, e.Path, mode, e.Dir); err != nil {
			return err
		}
	}
	return err
}

// Rename moves a file or folder in one step. It replaces a file, but no folder with content.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	var id uint64
	return s.call(ctx, "rename", from, func(l *link) error {
		info, err := l.Client.Stat(from)
		if id != 0 && errors.Is(err, os.ErrNotExist) { // the answer to the last try may have been lost
			there, lost := l.Client.Stat(to)
			if lost == nil && idOf(there) == id {
				return nil
			}
			if lost != nil && !errors.Is(lost, os.ErrNotExist) {
				return lost // not known: it is asked again
			}
		}
		if err != nil {
			return err
		}
		if err := s.replaceable(l, info, to); err != nil {
			return err
		}
		id = idOf(info)
		return l.Client.Rename(from, to)
	})
}

// replaceable refuses what HDFS would do and a file system of this machine would not.
func (s *Store) replaceable(l *link, from os.FileInfo, to string) error {
	there, err := l.Client.Stat(to)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case from.IsDir() && !there.IsDir():
		return &store.Error{
			Err: fmt.Errorf("%s: got a file in its place: %w", to, syscall.ENOTDIR), Hint: "remove it, or name another",
		}
	case !from.IsDir() && there.IsDir():
		return &store.Error{
			Err: fmt.Errorf("%s: got a folder in its place: %w", to, fs.ErrExist), Hint: "remove it, or name another",
		}
	}
	return nil
}

func idOf(info os.FileInfo) uint64 {
	if status, ok := info.Sys().(*client.FileStatus); ok {
		return status.GetFileId()
	}
	return 0
}

// Remove removes a file, or a folder with its content.
func (s *Store) Remove(ctx context.Context, path string) error {
	if path == "/" {
		return s.explain(
			"remove", path, &store.Error{Err: errors.New("got the whole filesystem"), Hint: "name what is in it"},
		)
	}
	asked := false
	return s.call(ctx, "remove", path, func(l *link) error {
		_, err := l.Client.Stat(path)
		if asked && errors.Is(err, os.ErrNotExist) { // the answer to the last try was lost
			return nil
		}
		if err != nil {
			return err
		}
		asked = true
		return l.RemoveAll(path)
	})
}

// Prune removes an empty folder. A folder with content stays, which is no error.
func (s *Store) Prune(ctx context.Context, path string) error {
	err := s.call(ctx, "remove", path, func(l *link) error { return l.Client.Remove(path) })
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Open reads a file from a position on. The content is read under ctx.
func (s *Store) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	r := &reader{store: s, ctx: ctx, path: path}
	if err := s.patiently(ctx, "open", path, r.open); err != nil {
		return nil, s.explain("open", path, err)
	}
	c := &store.Content{ReadCloser: r, Info: r.info}
	if at.Offset > 0 && at.Offset <= r.info.Size && (at.Validator == "" || at.Validator == r.info.Validator) {
		c.Offset = at.Offset
	}
	if err := r.seek(c.Offset); err != nil {
		return nil, s.explain("open", path, errors.Join(err, r.Close()))
	}
	return c, nil
}

// Create makes a new file and the folders above it. When Close has returned without error the file is complete, has at
// least as many copies as the cluster requires, and its checksums match. It is written under ctx.
func (s *Store) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	w := &writer{store: s, ctx: ctx, path: path}
	if err := s.patiently(ctx, "create", path, w.create); err != nil {
		return nil, s.explain("create", path, err)
	}
	return w, nil
}
