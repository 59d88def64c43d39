// Package ports claims ports of 127.0.0.1 for the servers of tests.
package ports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Ports come from 12000 to 19999: below what Linux hands to outgoing connections by default, so that nobody takes them
// while a server is down, and outside muster's own range of 20000 to 29999.
const low, high = 12000, 19999

// Claim claims n ports for the life of the test.
func Claim(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		port, lock, err := Lock()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lock.Close() })
		ports = append(ports, port)
	}
	return ports
}

// Lock claims a port until the lock is closed. That is an abstract unix socket, which all test processes of this network
// namespace see and which goes with its holder.
func Lock() (port int, lock net.Listener, err error) {
	for range 10_000 {
		port := low + rand.IntN(high-low+1)
		lock, err := net.Listen("unix", fmt.Sprintf("@muster-test/port/%d", port))
		if err != nil {
			continue
		}
		if free(port) {
			return port, lock, nil
		}
		lock.Close()
	}
	return 0, nil, fmt.Errorf("no free port from %d to %d", low, high)
}

// free tells whether both TCP and UDP can be bound, on all addresses and also by a program that minds the old
// connections of an earlier server (TIME_WAIT), as net.Listen alone does not.
func free(port int) bool {
	addr := fmt.Sprintf(":%d", port)
	mind := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var inner error
		err := c.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0) })
		return errors.Join(err, inner)
	}}
	l, err := mind.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	p.Close()
	return true
}
