package consulserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports come from 12000 to 19999: below what Linux hands to outgoing connections by default, so that
// nobody takes them while the server is stopped, and outside muster's own range of 20000 to 29999.
const lowPort, highPort = 12000, 19999

// holdPorts claims n ports until the test ends. A claim is an abstract unix socket, a lock
// that all test processes of this network namespace see and that goes with its holder.
func holdPorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range 10_000 {
		if len(ports) == n {
			return ports
		}
		port := lowPort + rand.IntN(highPort-lowPort+1)
		lock, err := net.Listen("unix", fmt.Sprintf("@muster-test/port/%d", port))
		if err != nil {
			continue
		}
		if !free(port) {
			lock.Close()
			continue
		}
		t.Cleanup(func() { lock.Close() })
		ports = append(ports, port)
	}
	t.Fatalf("no %d free ports from %d to %d on 127.0.0.1", n, lowPort, highPort)
	return nil
}

// free tells whether both TCP and UDP can be bound; serf needs both.
func free(port int) bool {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	l, err := net.Listen("tcp", addr)
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
