package ports

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// holdPort binds the port on all addresses of both families without listening. It keeps out all others, those with
// SO_REUSEADDR too, because the holder itself has it not; reuse sets it for the bind alone, past old connections
// (TIME_WAIT).
func holdPort(port int, reuse bool) (int, error) {
	fd, err := bindAny(unix.AF_INET6, &unix.SockaddrInet6{Port: port}, reuse)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		fd, err = bindAny(unix.AF_INET, &unix.SockaddrInet4{Port: port}, reuse)
	}
	return fd, err
}

func bindAny(family int, addr unix.Sockaddr, reuse bool) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if reuse {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if reuse && err == nil {
		// Left on, it would let in any other socket that has it.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// holdAgain is for a port that is asked for by number: what may forbid the plain bind is its old connections, of an
// earlier run perhaps.
func holdAgain(port int) (int, error) {
	fd, err := holdPort(port, false)
	if errors.Is(err, unix.EADDRINUSE) {
		fd, err = holdPort(port, true)
	}
	return fd, err
}

// closeFD closes *fd for good: between fork and exec a child of ours has a copy, so none may be there.
func closeFD(fd *int) error {
	if *fd < 0 {
		return nil
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	err := unix.Close(*fd)
	*fd = -1
	return err
}
