package apps

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// A cache per instance, found by its export: a killed one comes back at its address, and those that a flex leaves
// running keep what they hold.
func TestMemcached(t *testing.T) {
	for name, args := range map[string]func() []string{
		"embedded": func() []string { return nil },
		"consul": func() []string {
			return []string{"--registry", consulserver.Start(t, consulserver.Options{}).URL(), "--host", "127.0.0.1"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, "memcached", "jmemcached")
			a.create(2, append([]string{"--component", "MEMCACHED", "2"}, args()...)...)
			servers := a.servers(2, "host_port")
			a.says(servers[0], "set colour 0 0 4\r\nblue\r\n", "STORED")
			a.says(servers[1], "set taste 0 0 4\r\nsour\r\n", "STORED")
			a.says(servers[0], "get colour\r\n", "VALUE colour 0 4", "blue", "END")
			a.says(servers[0], "get taste\r\n", "END")

			if end := a.kill("MEMCACHED-0", "app/run/component.pid"); end != "killed by SIGKILL" {
				t.Errorf("the last life ended with %q, want the signal", end)
			}
			a.says(servers[0], "get colour\r\n", "END")
			a.says(servers[1], "get taste\r\n", "VALUE taste 0 4", "sour", "END")
			if now := a.servers(2, "host_port"); !slices.Equal(now, servers) {
				t.Errorf("servers %v after the kill, want %v as before", now, servers)
			}

			before := a.instances()
			a.flex("MEMCACHED", 3, "MEMCACHED-2", "none")
			a.up(3)
			more := a.servers(3, "host_port")
			if !slices.Equal(more[:2], servers) {
				t.Errorf("servers %v after the flex, want %v to be the first", more, servers)
			}
			a.left(before)
			a.says(more[2], "set shape 0 0 5\r\nround\r\n", "STORED")
			a.flex("MEMCACHED", 2, "none", "MEMCACHED-2")
			a.up(2)
			a.left(before)
			a.says(servers[1], "get taste\r\n", "VALUE taste 0 4", "sour", "END")
			if now := a.servers(2, "host_port"); !slices.Equal(now, servers) {
				t.Errorf("servers %v after the flex back, want %v", now, servers)
			}
			a.stop("MEMCACHED-0", "MEMCACHED-1")
		})
	}
}

// says says something to a server, as soon as it listens, and compares the lines of the answer.
func (a *app) says(server, words string, want ...string) {
	a.t.Helper()
	var conn net.Conn
	a.await(server+" to listen", func() (ok bool) {
		var err error
		conn, err = (&net.Dialer{Timeout: watchdog}).DialContext(a.t.Context(), "tcp", server)
		return err == nil
	})
	defer conn.Close()
	must(a.t, conn.SetDeadline(time.Now().Add(watchdog)))
	_, err := conn.Write([]byte(words))
	must(a.t, err)
	lines := bufio.NewScanner(conn)
	var got []string
	for len(got) < len(want) && lines.Scan() {
		got = append(got, lines.Text())
	}
	if !slices.Equal(got, want) {
		a.t.Errorf("%s answered %q with %q, want %q", server, strings.TrimSpace(words), got, want)
	}
}
