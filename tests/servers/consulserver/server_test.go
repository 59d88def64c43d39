package consulserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

func TestDataSurvivesARestartAndNotAnEmptyOne(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	put(t, s, "k", "v")

	first := s.PID()
	s.Restart()
	if s.PID() == first {
		t.Errorf("pid is still %d after a restart", first)
	}
	if got := get(t, s, "k"); got != "v" {
		t.Errorf("after a restart: got %q, want %q", got, "v")
	}

	s.Kill()
	if s.PID() != 0 {
		t.Errorf("after Kill: got pid %d, want 0", s.PID())
	}
	s.Restart()
	if got := get(t, s, "k"); got != "v" {
		t.Errorf("after a kill: got %q, want %q", got, "v")
	}

	s.RestartEmpty()
	if got := get(t, s, "k"); got != "" {
		t.Errorf("after an empty restart: got %q, want nothing", got)
	}
}

func TestStopEndsTheProcess(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	pid := s.PID()
	s.Stop()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("pid %d after Stop: got %v, want %v", pid, err, syscall.ESRCH)
	}
	if c, err := net.Dial("tcp", s.HTTPAddr); err == nil {
		c.Close()
		t.Error("still listens after Stop")
	}
}

func TestSessionsAreTakenAtOnce(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	for range 2 {
		do(t, http.MethodPut, "http://"+s.HTTPAddr+"/v1/session/create", `{"TTL":"10s"}`)
		s.RestartEmpty()
	}
}

func TestTheServerGoesWithTheTest(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) {
		pid = consulserver.Start(t, consulserver.Options{}).PID()
	})
	if pid == 0 {
		t.Skip("inner did not start a server")
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("pid %d after the test: got %v, want %v", pid, err, syscall.ESRCH)
	}
}

func TestConnectionLimit(t *testing.T) {
	const beyond = consulserver.StockLimit + 20
	for _, tt := range []struct {
		name    string
		limit   int
		refused bool
	}{
		{"stock", consulserver.StockLimit, true},
		{"wide", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := consulserver.Start(t, consulserver.Options{Limit: tt.limit})
			refused := 0
			for range beyond {
				status := keepOpen(t, s.HTTPAddr)
				if status == http.StatusTooManyRequests {
					refused++
				}
			}
			if got := refused > 0; got != tt.refused {
				t.Errorf("%d connections: %d answered 429, want some: %v", beyond, refused, tt.refused)
			}
		})
	}
}

func TestABinaryThatIsMissingIsNamed(t *testing.T) {
	t.Setenv("MUSTER_CONSUL", t.TempDir()+"/absent")
	_, err := consulserver.Binary()
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(fmt.Sprint(err), "scripts/lab/consul build") {
		t.Errorf("got %v, want what is missing and how to make it", err)
	}
}

// keepOpen makes one request on a connection of its own, which stays open until the test ends. A refused connection is
// answered before it asks, which net/http reports as an error: hence by hand.
func keepOpen(t *testing.T, addr string) int {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, _ = fmt.Fprintf(c, "GET /v1/status/leader HTTP/1.1\r\nHost: %s\r\n\r\n", addr) // fails when refused
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func put(t *testing.T, s *consulserver.Server, key, value string) {
	t.Helper()
	do(t, http.MethodPut, "http://"+s.HTTPAddr+"/v1/kv/"+key, value)
}

// get is the key's value, empty when there is none.
func get(t *testing.T, s *consulserver.Server, key string) string {
	t.Helper()
	resp, err := http.Get("http://" + s.HTTPAddr + "/v1/kv/" + key + "?raw")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return ""
	}
	return string(b)
}

func do(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %s: %s", method, url, resp.Status, b)
	}
}

// A cluster outlives its leader, and takes it back.
func TestAClusterOutlivesItsLeader(t *testing.T) {
	net := netns.New(t, 3)
	servers := consulserver.StartCluster(t, net, 0, 1, 2)
	leader := slices.IndexFunc(servers, func(s *consulserver.Server) bool { return s.Leads(t.Context()) })
	if leader < 0 {
		t.Fatal("nobody leads")
	}
	servers[leader].Kill()
	if servers[leader].Leads(t.Context()) {
		t.Error("a server that was killed leads")
	}
	other := servers[(leader+1)%len(servers)]
	other.Restart() // returns once there is a leader
	servers[leader].Restart()
	n := 0
	for _, s := range servers {
		if s.Leads(t.Context()) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d servers lead", n)
	}
}
