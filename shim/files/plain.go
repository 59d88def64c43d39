package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process owns the folder of its logs, and an agent may be root. Whatever the process puts there in a file's place
// (a link out of the folder, a pipe that nobody fills, the node of a device, a file without end) must neither lead the
// agent elsewhere nor hold it up. The folder itself has a name that is not the process's to change.

// ErrNotPlain says that something else than a file stands in a file's place.
var ErrNotPlain = errors.New("not a regular file with one name")

// mostPlain bounds what is read whole of a file that a process may have written, in bytes.
const mostPlain = 64 << 20

// OpenPlain opens a regular file for reading: no link, pipe or device, which it does not so much as touch.
func OpenPlain(path string) (*os.File, error) { return openPlain(path, os.O_RDONLY) }

// AppendPlain opens a regular file, which it makes if need be, for writing at its end. One that has other names as
// well is refused: it may be somebody else's file. A new file is its folder's owner's.
func AppendPlain(path string) (*os.File, error) {
	for {
		f, err := openPlain(path, os.O_WRONLY|os.O_APPEND)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if in, statErr := folderOf(path); err == nil && statErr == nil && os.Geteuid() == 0 {
			_ = f.Chown(int(in.Uid), int(in.Gid)) // at worst it stays the agent's
		}
		return f, err
	}
}

// folderOf is the folder that a file is in.
func folderOf(path string) (in unix.Stat_t, err error) {
	err = unix.Stat(filepath.Dir(path), &in)
	return in, err
}

// strange tells whether a file may be none of its folder's: its owner could not read it by itself, and has linked or
// moved it here for an agent that is root to read.
func strange(path string, is unix.Stat_t) bool {
	if os.Geteuid() != 0 || is.Mode&0o004 != 0 {
		return false
	}
	in, err := folderOf(path)
	return err != nil || in.Uid != 0 && in.Uid != is.Uid
}

// PlainSize is the length of a regular file in bytes, 0 when there is none.
func PlainSize(path string) int64 {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// openPlain looks at what the name stands for before it opens it: the opening alone may start a device.
func openPlain(path string, flags int) (*os.File, error) {
	refuse := func(err error) error { return &fs.PathError{Op: "open", Path: path, Err: err} }
	at, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, refuse(err)
	}
	defer unix.Close(at)
	var is unix.Stat_t
	if err := unix.Fstat(at, &is); err != nil {
		return nil, refuse(err)
	}
	if is.Mode&unix.S_IFMT != unix.S_IFREG || flags != os.O_RDONLY && is.Nlink > 1 || strange(path, is) {
		return nil, refuse(ErrNotPlain)
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(at), flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENOENT) {
		err = fmt.Errorf("/proc is not mounted: %w", unix.ENOSYS) // the file is there
	}
	if err != nil {
		return nil, refuse(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ReadPlain reads a whole regular file; a file over the limit is an error.
func ReadPlain(path string) ([]byte, error) {
	f, err := OpenPlain(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, mostPlain+1))
	if err == nil && len(text) > mostPlain {
		err = fmt.Errorf("read %s: longer than %d bytes", path, mostPlain)
	}
	return text, errors.Join(err, f.Close())
}
