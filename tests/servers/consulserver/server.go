// Package consulserver starts real Consul servers for tests: server mode, data on disk, on
// 127.0.0.1. Enters a test and its wishes; leaves a server that has a leader, may be stopped, killed
// and started again with its data or without, and is gone when the test ends, however it ends. The
// binary comes from `scripts/lab/consul build`; without it, and with -short, the test is skipped (package need).
package consulserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/ports"
)

// StockLimit is Consul's own http_max_conns_per_client. Asked for in Options it is left to
// Consul's default rather than set.
const StockLimit = 200

// WideLimit is the limit used when Options name none. Consul refuses to start when limit + 20
// reaches its descriptor limit, commonly 20,000.
const WideLimit = 19000

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong.
const watchdog = 30 * time.Second

// nodeName is the server's name in its own catalog.
const nodeName = "lab"

// Options are a test's wishes; the zero value is a good server.
type Options struct {
	// Limit is http_max_conns_per_client; 0 means WideLimit, StockLimit keeps Consul's default.
	Limit int
	// Dir keeps data and log; empty means a folder that goes with the test.
	Dir string
	// Config is further agent configuration in HCL, such as ACLs.
	Config string
	// Token is what Start itself presents; needed when Config denies anonymous reads.
	Token string
	// Net is a network of hosts, on number Host of which the server runs; nil: on this machine's loopback.
	Net  *netns.Net
	Host int
	// DNS has the server answer DNS at DNSAddr.
	DNS bool
}

// Server is one Consul server. Its methods are for one goroutine at a time and end the test on
// errors.
type Server struct {
	// HTTPAddr is HOST:PORT of the HTTP API; it stays the same over restarts.
	HTTPAddr string
	// Dir holds `data/` and `consul.log`.
	Dir string
	// DNSAddr is HOST:PORT of its DNS, over UDP and TCP; empty without Options.DNS.
	DNSAddr string

	t      testing.TB
	name   string // in the catalog
	binary string
	args   []string
	token  string
	place  place
	run    *child.Process // nil while stopped
}

// Start starts a server and returns once it has a leader and takes sessions. The server is killed
// when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := prepare(t, o, nodeName, 1)
	if o.DNS {
		s.answerDNS()
	}
	s.start()
	return s
}

// prepare makes a server of a cluster of that size; nothing runs yet.
func prepare(t testing.TB, o Options, name string, size int) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Consul: not with -short")
	}
	binary, err := Binary()
	if err != nil {
		need.Skip(t, err.Error())
	}
	dir := o.Dir
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p, at := ports.Claim(t, 4), placeOf(o)
	s := &Server{
		HTTPAddr: fmt.Sprintf("%s:%d", at.address, p[0]),
		Dir:      dir,
		place:    at,
		t:        t,
		name:     name,
		binary:   binary,
		token:    o.Token,
		args: []string{
			"agent", "-server", fmt.Sprintf("-bootstrap-expect=%d", size), "-node=" + name,
			"-data-dir=" + filepath.Join(dir, "data"), "-bind=" + at.address, "-client=" + at.address,
			fmt.Sprintf("-http-port=%d", p[0]), fmt.Sprintf("-server-port=%d", p[1]),
			fmt.Sprintf("-serf-lan-port=%d", p[2]), fmt.Sprintf("-serf-wan-port=%d", p[3]),
			"-dns-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1", "-hcl=" + config(o),
		},
	}
	t.Cleanup(s.end)
	return s
}

// Binary is the Consul to start: MUSTER_CONSUL, else what `scripts/lab/consul build` left in the
// cache. The error says what to do when it is not there.
func Binary() (string, error) {
	path := os.Getenv("MUSTER_CONSUL")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(cache, "muster", "consul-1.14.4", "consul")
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("no Consul at %s (make it with scripts/lab/consul build): %w", path, err)
	}
	return path, nil
}

// URL is the server as `--registry` takes it.
func (s *Server) URL() string { return "consul://" + s.HTTPAddr }

// PID is the running server's process id, 0 while it is stopped.
func (s *Server) PID() int {
	if s.run == nil {
		return 0
	}
	return s.run.PID
}

// Stop ends the server by SIGTERM and waits until it is gone; its data stays. On a stopped
// server it does nothing.
func (s *Server) Stop() { s.t.Helper(); s.signal(syscall.SIGTERM) }

// Kill ends the server by SIGKILL and waits until it is gone; its data stays as it was.
func (s *Server) Kill() { s.t.Helper(); s.signal(syscall.SIGKILL) }

// Restart starts the server again on the same ports with the same data, stopping it before if it
// runs, and waits for its leader.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.start()
}

// RestartEmpty is Restart with all data lost.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.Stop()
	if err := os.RemoveAll(filepath.Join(s.Dir, "data")); err != nil {
		s.t.Fatal(err)
	}
	s.start()
}

func (s *Server) start() {
	s.t.Helper()
	s.launch()
	s.awaitReady()
}

func (s *Server) launch() {
	s.t.Helper()
	run, err := child.StartLogged(s.place.command(s.binary, s.args...), filepath.Join(s.Dir, "consul.log"))
	if err != nil {
		s.t.Fatalf("start %s: %v", s.binary, err)
	}
	s.run = run
}

func (s *Server) awaitReady() {
	s.t.Helper()
	if err := s.ready(); err != nil {
		s.t.Fatalf("consul at %s: %v; the end of its log:\n%s", s.HTTPAddr, err, s.logTail())
	}
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.run == nil {
		return
	}
	err := s.run.End(sig, watchdog)
	s.run = nil
	if err != nil {
		s.t.Fatalf("consul at %s: %v", s.HTTPAddr, err)
	}
}

// end is the clean-up: it neither fails nor leaves anything.
func (s *Server) end() {
	if s.run == nil {
		return
	}
	if s.t.Failed() {
		s.t.Logf("the end of %s:\n%s", filepath.Join(s.Dir, "consul.log"), s.logTail())
	}
	_ = s.run.End(syscall.SIGKILL, watchdog)
	s.run = nil
}

// ready waits until there is a leader and until the server stands in its own catalog: before that
// every session is refused with "Missing node registration".
func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	var last error
	for {
		if last = s.probe(ctx); last == nil {
			return nil
		}
		select {
		case <-s.run.Gone:
			return errors.New("ended at its start")
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", watchdog, last)
		case <-poll.C:
		}
	}
}

func (s *Server) probe(ctx context.Context) error {
	var leader string
	if err := s.get(ctx, "/v1/status/leader", &leader); err != nil {
		return err
	}
	if leader == "" {
		return errors.New("no leader")
	}
	var checks []struct{ CheckID, Status string }
	if err := s.get(ctx, "/v1/health/node/"+s.name, &checks); err != nil {
		return err
	}
	for _, c := range checks {
		if c.CheckID == "serfHealth" && c.Status == "passing" {
			return nil
		}
	}
	return errors.New("not in its own catalog yet")
}

func (s *Server) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTPAddr+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Consul-Token", s.token)
	req.Close = true // a kept connection would count against the limit under test
	resp, err := s.place.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func (s *Server) logTail() string {
	const most = 4 << 10
	b, err := os.ReadFile(filepath.Join(s.Dir, "consul.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}

func config(o Options) string {
	// no look for updates: nothing is sent to an address outside this machine
	hcl := "performance { raft_multiplier = 1 }\ndisable_update_check = true\n"
	limit := o.Limit
	if limit == 0 {
		limit = WideLimit
	}
	if limit != StockLimit {
		hcl += fmt.Sprintf("limits { http_max_conns_per_client = %d }\n", min(limit, descriptors()-100))
	}
	return hcl + o.Config
}

// descriptors is the hard limit of open files, to which Consul raises its own.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Max > 1<<20 {
		return 1 << 20
	}
	return int(l.Max)
}
