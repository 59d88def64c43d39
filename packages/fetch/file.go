package fetch

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
)

// files are those of this machine.
type files struct{ on Disk }

// Files is the store of a disk; paths are absolute.
func Files(on Disk) Store { return files{on} }

// openFiles takes `file:PATH`, `file:///PATH`, `file://localhost/PATH` and a path alone. Nothing is decoded: a path is
// written as it is.
func openFiles(_ context.Context, url string, _ Options) (Store, string, error) {
	path := url
	if loc := scheme.FindStringIndex(url); loc != nil {
		path = url[loc[1]:]
	}
	if rest, ok := strings.CutPrefix(path, "//"); ok && len(path) != len(url) {
		host, local, found := strings.Cut(rest, "/")
		if host != "" && host != "localhost" || !found {
			return nil, "", &Error{Op: "open", URL: url, Err: fmt.Errorf("got host %q, want none", host), Hint: "write file:///PATH"}
		}
		path = "/" + local
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, "", &Error{Op: "open", URL: url, Err: errors.New("got no path"), Hint: "write file:///PATH"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", explain("open", url, err)
	}
	return files{Machine{}}, abs, nil
}

func (d files) List(_ context.Context, path string) ([]Info, error) {
	entries, err := d.names(path)
	if err != nil {
		return nil, explain("list", path, err)
	}
	var all []Info
	for _, e := range entries {
		info, err := d.on.Stat(filepath.Join(path, e))
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile, or a link to nothing
			continue
		}
		if err != nil {
			return nil, explain("list", path, err)
		}
		all = append(all, describe(filepath.Join(path, e), info))
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.Path, b.Path) })
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

func (d files) Stat(_ context.Context, path string) (Info, error) {
	info, err := d.on.Stat(path)
	if err != nil {
		return Info{}, explain("stat", path, err)
	}
	return describe(path, info), nil
}

// describe takes the inode and the time of its last change into the validator: a file that was replaced or rewritten
// shows it there even where its time was set back.
func describe(path string, info fs.FileInfo) Info {
	i := Info{Path: path, Size: info.Size(), ModTime: info.ModTime(), Dir: info.IsDir()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && !i.Dir {
		i.Validator = fmt.Sprintf("%d-%d-%d-%d-%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	}
	return i
}

func (d files) Open(ctx context.Context, path string, at Position) (_ *Content, err error) {
	// a pipe would wait for somebody to write to it
	f, err := d.on.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, explain("open", path, err)
	}
	defer func() {
		if err != nil {
			err = explain("open", path, errors.Join(err, f.Close()))
		}
	}()
	return contentOf(ctx, f, path, at)
}

// contentOf is an opened file from a position on.
func contentOf(ctx context.Context, f *os.File, path string, at Position) (*Content, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("got a %s, %w", kindOf(info.Mode()), ErrNotFile)
	}
	c := &Content{ReadCloser: struct {
		io.Reader
		io.Closer
	}{contextReader{ctx, f}, f}, Info: describe(path, info)}
	if at.Offset > info.Size() || at.Validator != "" && at.Validator != c.Info.Validator {
		at.Offset = 0
	}
	c.Offset, err = f.Seek(at.Offset, io.SeekStart)
	return c, err
}

func kindOf(mode fs.FileMode) string {
	if mode.IsDir() {
		return "folder"
	}
	return "device, pipe or socket"
}

func (d files) Create(_ context.Context, path string) (io.WriteCloser, error) {
	if err := d.on.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, explain("create", path, err)
	}
	f, err := d.on.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, explain("create", path, err)
	}
	return durable{f}, nil
}

// durable is on disk once it is closed.
type durable struct{ *os.File }

func (d durable) Close() error { return errors.Join(d.Sync(), d.File.Close()) }

func (d files) Rename(_ context.Context, from, to string) error {
	if err := d.on.Rename(from, to); err != nil {
		return explain("rename", from, err)
	}
	return explain("rename", from, d.syncFolder(filepath.Dir(to)))
}

// syncFolder makes a rename in it outlive a loss of power.
func (d files) syncFolder(dir string) error {
	f, err := d.on.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d files) Remove(_ context.Context, path string) error {
	if _, err := d.on.Lstat(path); err != nil {
		return explain("remove", path, err)
	}
	return explain("remove", path, d.on.RemoveAll(path))
}
