package hostlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another agent has the lock.
var ErrHeld = errors.New("held by another agent")

// Lock is held until Release or the end of the process. A program that the process executes does not inherit it, but by
// Start.
type Lock struct {
	file    int // descriptor, -1: released
	path    string
	shared  bool // a program that Start started has it, too, or this process is that program
	socket  int  // the announcement; -1: none
	another *holder
}

// holder is an agent of another user, or whatever else bound the name of the announcement.
type holder struct {
	UID int // -1: not known
	PID int
}

func (h holder) String() string {
	if h.UID < 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("uid %d (pid %d)", h.UID, h.PID)
}

// Other is a process of another user, not root, that announces the same lock. Anybody can do that: it is a hint.
// Empty: there was none when the lock was taken.
func (l *Lock) Other() string {
	if l.another == nil {
		return ""
	}
	return l.another.String()
}

// inheritedFD is the descriptor of the lock that Start gave to this process.
const inheritedFD = 3

// inherited is the path of that lock, empty where there is none. Programs that this process executes do not inherit
// the descriptor.
var (
	inheritedMu sync.Mutex
	inherited   = inheritedPath()
)

func inheritedPath() string {
	flags, err := unix.FcntlInt(inheritedFD, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 { // opened by this process
		return ""
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", inheritedFD))
	if err != nil || filepath.Base(filepath.Dir(path)) != folderName {
		return ""
	}
	unix.CloseOnExec(inheritedFD)
	return path
}

// Start starts a program of muster that has the lock from its first moment on: its Take of the same name succeeds. The
// lock is released when the program has ended and this process has released it, too. Descriptor 3 is the lock's: files
// of cmd.ExtraFiles begin at descriptor 4.
func (l *Lock) Start(cmd *exec.Cmd) error {
	fd, err := unix.FcntlInt(uintptr(l.file), unix.F_DUPFD_CLOEXEC, inheritedFD)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	file := os.NewFile(uintptr(fd), "lock")
	cmd.ExtraFiles = append([]*os.File{file}, cmd.ExtraFiles...) // the first is inheritedFD
	l.shared = true
	return errors.Join(cmd.Start(), file.Close())
}

// Take takes the lock without waiting. The error is ErrHeld when another process of this user, or this one, has it, or
// when root has it.
func Take(name string) (*Lock, error) {
	dir, err := ownFolder()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	l, err := takeIn(dir, name)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	// Announce before the look at root's: of two agents that take it at the same time one at least sees the other.
	l.socket, l.another, err = announce(name)
	if l.shared { // the one that started this program may still announce it
		err, l.another = nil, nil
	}
	if err == nil && os.Geteuid() != 0 && heldIn(rootFolder, name) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), l.Release())
	}
	return l, nil
}

// mostFile is the longest name of a lock's file, in bytes.
const mostFile = 200

// fileName is the name of a lock's file: the lock's, escaped, or its digest where that is too long.
func fileName(name string) string {
	escaped := url.PathEscape(name)
	if strings.HasPrefix(escaped, ".") {
		escaped = "%2E" + escaped[1:]
	}
	if len(escaped) > mostFile {
		digest := sha256.Sum256([]byte(name))
		return hex.EncodeToString(digest[:])
	}
	return escaped
}

// takeIn locks the file of that name in the folder.
func takeIn(dir, name string) (*Lock, error) {
	path := filepath.Join(dir, fileName(name))
	if takeInherited(path) {
		return &Lock{file: inheritedFD, path: path, shared: true, socket: -1}, nil
	}
	for {
		fd, err := openOwn(path)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrHeld
		}
		if err != nil {
			return nil, errors.Join(err, unix.Close(fd))
		}
		if sameFile(fd, path) {
			return &Lock{file: fd, path: path, socket: -1}, nil
		}
		if err := unix.Close(fd); err != nil { // its holder removed the file while it was being opened
			return nil, err
		}
	}
}

// openOwn opens a lock's file, and makes it where there is none.
func openOwn(path string) (int, error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Open(path, flags, 0o600)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	var is unix.Stat_t
	if err = unix.Fstat(fd, &is); err == nil {
		switch {
		case is.Mode&unix.S_IFMT != unix.S_IFREG:
			err = fmt.Errorf("%s is not a regular file: remove it", path)
		case int(is.Uid) != os.Geteuid() || is.Mode&0o077 != 0 || is.Nlink > 1:
			err = fmt.Errorf("%s is open to other users (uid %d, mode %04o, %d links): remove it", path, is.Uid,
				is.Mode&0o7777, is.Nlink)
		}
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// sameFile tells that the path names the file of the descriptor.
func sameFile(fd int, path string) bool {
	var open, named unix.Stat_t
	return unix.Fstat(fd, &open) == nil && unix.Lstat(path, &named) == nil &&
		open.Dev == named.Dev && open.Ino == named.Ino
}

// takeInherited tells, once, that this process inherited the lock of that file.
func takeInherited(path string) bool {
	inheritedMu.Lock()
	defer inheritedMu.Unlock()
	if inherited != path || !sameFile(inheritedFD, path) ||
		unix.Flock(inheritedFD, unix.LOCK_EX|unix.LOCK_NB) != nil { // held already, by the same open file
		return false
	}
	inherited = ""
	return true
}

// Release gives the lock to others. It may be called once more.
func (l *Lock) Release() error {
	if l == nil || l.file < 0 {
		return nil
	}
	file, socket := l.file, l.socket
	l.file, l.socket = -1, -1
	if !l.shared && sameFile(file, l.path) { // else another process may still hold the file
		_ = unix.Unlink(l.path) // a file that stays is no lock
	}
	syscall.ForkLock.RLock() // between fork and exec a child of ours has a copy: none may be there
	defer syscall.ForkLock.RUnlock()
	var err error
	if socket >= 0 {
		err = unix.Close(socket)
	}
	return errors.Join(err, unix.Close(file))
}
