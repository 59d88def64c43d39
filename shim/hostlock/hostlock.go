package hostlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another agent has the lock.
var ErrHeld = errors.New("held by another agent")

// mostName is what an address takes after its leading zero byte (struct sockaddr_un), in bytes.
const mostName = 107

// Lock is held until Release or the end of the process. A program that the process executes does not inherit it.
type Lock struct{ fd int }

// Take takes the lock `@muster/<name>` without waiting. A name that is too long for an address is replaced by its
// digest. The error is ErrHeld when another process, or this one, has it.
func Take(name string) (*Lock, error) {
	address := "@muster/" + name
	if len(address) > mostName {
		digest := sha256.Sum256([]byte(name))
		address = "@muster/" + hex.EncodeToString(digest[:])
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
