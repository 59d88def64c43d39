package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// maxSocketPath is the longest path of a unix socket, in bytes (unix(7): sun_path with its NUL).
const maxSocketPath = 107

// ListenUnix listens on a unix socket that only its owner can open (0600). It replaces a socket that no process serves;
// a served one, or a file of another kind, is an error. Closing the listener removes the socket. ctx limits the
// listening, not the listener.
func ListenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: got a path of %d bytes, want at most %d", path, len(path), maxSocketPath)
	}
	if err := clearStale(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// bind(2) makes the file with the mode of the socket before it: there is no moment at which others could open it.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	return private.Listen(ctx, "unix", path)
}

func clearStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("got a file of mode %s, want a socket or nothing", info.Mode())
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return errors.New("another server answers there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// ListenLoopback listens on HOST:PORT, where HOST is localhost or a loopback address; port 0 takes a free one. Every
// user of the machine can connect to it: prefer a unix socket.
func ListenLoopback(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen on %s: %w", addr, errNotLocal)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := local(l.Addr()); err != nil { // what localhost resolved to
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

var errNotLocal = errors.New("want a unix socket or a loopback address: the embedded registry asks nobody who they are")

func local(addr net.Addr) error {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return nil
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return nil
		}
	}
	return fmt.Errorf("serve on %s: %w", addr, errNotLocal)
}
