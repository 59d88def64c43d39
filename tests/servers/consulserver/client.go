package consulserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"

	"github.com/muster-agent/muster/tests/servers/ports"
)

// clientName is the client agent's name in the catalog.
const clientName = "host"

// Client starts a Consul agent in client mode beside the server, as it runs on each host of a cluster: it keeps what it
// is told of its host's services itself, and asks the server for the rest. It answers no DNS. It is killed when the
// test ends; config is further configuration in HCL, token what the start itself presents.
func (s *Server) Client(t testing.TB, config, token string) *Server {
	t.Helper()
	dir := t.TempDir()
	p := ports.Claim(t, 2)
	c := &Server{
		HTTPAddr: fmt.Sprintf("127.0.0.1:%d", p[0]), Dir: dir, t: t, binary: s.binary, token: token,
		place: placeOf(Options{}),
		args: []string{
			"agent", "-node=" + clientName, "-data-dir=" + filepath.Join(dir, "data"), "-bind=127.0.0.1",
			"-client=127.0.0.1",
			fmt.Sprintf("-http-port=%d", p[0]), fmt.Sprintf("-serf-lan-port=%d", p[1]), "-dns-port=-1", "-grpc-port=-1",
			"-grpc-tls-port=-1",
			"-retry-join=127.0.0.1:" + s.flag("serf-lan-port"), "-retry-interval=1s",
			"-hcl=disable_update_check = true\n" + config,
		},
	}
	run, err := child.StartLogged(c.place.command(c.binary, c.args...), filepath.Join(dir, "consul.log"))
	if err != nil {
		t.Fatalf("start a client agent of %s: %v", s.HTTPAddr, err)
	}
	c.run = run
	t.Cleanup(c.end)
	if err := c.joined(); err != nil {
		t.Fatalf("client agent at %s: %v; the end of its log:\n%s", c.HTTPAddr, err, c.logTail())
	}
	return c
}

// joined waits until the servers have the agent in their catalog.
func (s *Server) joined() error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		var checks []struct{ CheckID, Status string }
		err := s.get(ctx, "/v1/health/node/"+clientName, &checks)
		for _, c := range checks {
			if c.CheckID == "serfHealth" && c.Status == "passing" {
				return nil
			}
		}
		select {
		case <-s.run.Gone:
			return errors.New("ended at its start")
		case <-ctx.Done():
			return fmt.Errorf("not in the catalog after %s (%w)", watchdog, errors.Join(ctx.Err(), err))
		case <-poll.C:
		}
	}
}
