package hostlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another agent has the lock.
var ErrHeld = errors.New("held by another agent")

// mostName is what an address takes after its leading zero byte (struct sockaddr_un), in bytes.
const mostName = 107

// Lock is held until Release or the end of the process. A program that the process executes does not inherit it, but by
// Start.
type Lock struct{ fd int }

// inheritedFD is the descriptor of the lock that Start gave to this process.
const inheritedFD = 3

// inherited is the address of that lock, empty where there is none. Programs that this process executes do not inherit
// the descriptor.
var (
	inheritedMu sync.Mutex
	inherited   = inheritedAddress()
)

func inheritedAddress() string {
	flags, err := unix.FcntlInt(inheritedFD, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 { // opened by this process
		return ""
	}
	at, err := unix.Getsockname(inheritedFD)
	if err != nil {
		return ""
	}
	if at, ok := at.(*unix.SockaddrUnix); ok && strings.HasPrefix(at.Name, prefix) {
		unix.CloseOnExec(inheritedFD)
		return at.Name
	}
	return ""
}

// Start starts a program of muster that has the lock from its first moment on: its Take of the same name succeeds. The
// lock is released when the program has ended and this process has released it, too. Descriptor 3 is the lock's: files
// of cmd.ExtraFiles begin at descriptor 4.
func (l *Lock) Start(cmd *exec.Cmd) error {
	fd, err := unix.FcntlInt(uintptr(l.fd), unix.F_DUPFD_CLOEXEC, inheritedFD)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	file := os.NewFile(uintptr(fd), "lock")
	cmd.ExtraFiles = append([]*os.File{file}, cmd.ExtraFiles...) // the first is inheritedFD
	return errors.Join(cmd.Start(), file.Close())
}

// prefix begins all addresses.
const prefix = "@muster/"

// Take takes the lock `@muster/<name>` without waiting. A name that is too long for an address is replaced by its
// digest. The error is ErrHeld when another process, or this one, has it.
func Take(name string) (*Lock, error) {
	address := prefix + name
	if len(address) > mostName {
		digest := sha256.Sum256([]byte(name))
		address = prefix + hex.EncodeToString(digest[:])
	}
	if takeInherited(address) {
		return &Lock{inheritedFD}, nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: address})
	if errors.Is(err, unix.EADDRINUSE) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), unix.Close(fd))
	}
	return &Lock{fd}, nil
}

// takeInherited tells, once, that this process inherited the lock of the address.
func takeInherited(address string) bool {
	inheritedMu.Lock()
	defer inheritedMu.Unlock()
	if inherited != address {
		return false
	}
	inherited = ""
	return true
}

// Release gives the lock to others. It may be called once more.
func (l *Lock) Release() error {
	if l == nil || l.fd < 0 {
		return nil
	}
	fd := l.fd
	l.fd = -1
	syscall.ForkLock.RLock() // between fork and exec a child of ours has a copy: none may be there
	defer syscall.ForkLock.RUnlock()
	return unix.Close(fd)
}
