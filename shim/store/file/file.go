package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// files are those of this machine.
type files struct{ on disk }

// New is the store of a disk; paths are absolute.
func New(on disk) store.Store { return files{on} }

// Open takes `file:PATH`, `file:///PATH`, `file://localhost/PATH` and a path alone. Nothing is decoded: a path is
// written as it is.
func Open(_ context.Context, url string) (store.Store, string, error) {
	scheme := store.SchemeOf(url)
	path := url[len(scheme):]
	if rest, ok := strings.CutPrefix(path, "//"); ok && scheme != "" {
		host, local, found := strings.Cut(rest, "/")
		if host != "" && host != "localhost" || !found {
			return nil, "", &store.Error{
				Op: "open", URL: url, Err: fmt.Errorf("got host %q, want none", host), Hint: "write file:///PATH",
			}
		}
		path = "/" + local
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, "", &store.Error{Op: "open", URL: url, Err: errors.New("got no path"), Hint: "write file:///PATH"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", store.Explain("open", url, err)
	}
	return files{Machine{}}, abs, nil
}

func (d files) List(_ context.Context, path string) ([]store.Info, error) {
	entries, err := d.names(path)
	if err != nil {
		return nil, store.Explain("list", path, err)
	}
	var all []store.Info
	for _, e := range entries {
		info, err := d.on.Stat(filepath.Join(path, e))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) { // gone meanwhile, or a link to nothing
			continue
		}
		if err != nil {
			return nil, store.Explain("list", path, err)
		}
		all = append(all, describe(filepath.Join(path, e), info))
	}
	slices.SortFunc(all, func(a, b store.Info) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// names are those in a folder.
func (d files) names(path string) (all []string, err error) {
	dir, err := d.on.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Readdirnames(-1)
}

func (d files) Stat(_ context.Context, path string) (store.Info, error) {
	info, err := d.on.Stat(path)
	if err != nil {
		return store.Info{}, store.Explain("stat", path, err)
	}
	return describe(path, info), nil
}

// describe takes the inode and the time of its last change into the validator: a file that was replaced or rewritten
// shows it there even where its time was set back.
func describe(path string, info fs.FileInfo) store.Info {
	i := store.Info{Path: path, Size: info.Size(), ModTime: info.ModTime(), Dir: info.IsDir()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && !i.Dir {
		i.Validator = fmt.Sprintf("%d-%d-%d-%d-%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	}
	return i
}

func (d files) Open(ctx context.Context, path string, at store.Position) (_ *store.Content, err error) {
	// a pipe would wait for somebody to write to it
	f, err := d.on.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, store.Explain("open", path, err)
	}
	defer func() {
		if err != nil {
			err = store.Explain("open", path, errors.Join(err, f.Close()))
		}
	}()
	return contentOf(ctx, f, path, at)
}

// contentOf is an opened file from a position on.
func contentOf(ctx context.Context, f *os.File, path string, at store.Position) (*store.Content, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("got a %s, %w", store.KindOf(info.Mode()), store.ErrNotFile)
	}
	c := &store.Content{ReadCloser: struct {
		io.Reader
		io.Closer
	}{store.Reader(ctx, f), f}, Info: describe(path, info)}
	if at.Offset > info.Size() || at.Validator != "" && at.Validator != c.Info.Validator {
		at.Offset = 0
	}
	c.Offset, err = f.Seek(at.Offset, io.SeekStart)
	return c, err
}

func (d files) Create(_ context.Context, path string) (io.WriteCloser, error) {
	if err := d.on.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, store.Explain("create", path, err)
	}
	f, err := d.on.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, store.Explain("create", path, err)
	}
	return durable{f}, nil
}

// durable is on disk once it is closed.
type durable struct{ *os.File }

func (d durable) Close() error { return errors.Join(d.Sync(), d.File.Close()) }

func (d files) Rename(_ context.Context, from, to string) error {
	if err := d.on.Rename(from, to); err != nil {
		return store.Explain("rename", from, err)
	}
	return store.Explain("rename", from, SyncFolder(d.on, filepath.Dir(to)))
}

// SyncFolder makes a rename in a folder outlive a loss of power.
func SyncFolder(on disk, dir string) error {
	f, err := on.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d files) Remove(_ context.Context, path string) error {
	if _, err := d.on.Lstat(path); err != nil {
		return store.Explain("remove", path, err)
	}
	return store.Explain("remove", path, d.on.RemoveAll(path))
}

func (d files) MkdirAll(_ context.Context, path string) error {
	err := d.on.MkdirAll(path, 0o755)
	if errors.Is(err, fs.ErrNotExist) { // somebody pruned one of them meanwhile
		err = d.on.MkdirAll(path, 0o755)
	}
	return store.Explain("make", path, err)
}

func (d files) Prune(_ context.Context, path string) error {
	err := d.on.Remove(path)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Executable tells whether a file may be run: what is copied keeps it.
func (d files) Executable(_ context.Context, path string) bool {
	info, err := d.on.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
