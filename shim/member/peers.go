package member

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// dialer makes clients of peer agents.
type dialer struct {
	app   string
	host  string        // this agent's address
	token func() string // of the run
}

// dial is a client of a peer's agent: by its socket on this host, else by its address with the run's token. A peer that
// answers no other host is on this machine, whatever the address in its row: it may be a name.
func (d dialer) dial(row registry.Row) (*status.Client, error) {
	if files.IsSocket(row.API) && (row.Peer == "" || plan.Hosts([]registry.Row{row})[0] == d.host) {
		c, err := status.DialRecorded(row.API, d.app, row.Instance.String())
		if err == nil || row.Peer == "" {
			return c, err
		}
	}
	if row.Peer == "" {
		return nil, fmt.Errorf("%s is on another host, and its agent does not listen there", row.Instance)
	}
	return status.DialPeer(row.Peer, d.token()), nil
}

// Peers are the instances that this one's processes may start programs in, for a job that mpirun starts.
func (m *Member) Peers() *status.Peers {
	return &status.Peers{Self: m.cfg.Loop.State().Instance.String(), Reach: m.reach, Ready: m.ready}
}

// reach is a client of a peer's agent, and the generation that both must be of.
func (m *Member) reach(_ context.Context, instance string) (*status.Client, int, error) {
	roster, _ := m.Roster()
	for _, row := range plan.MPIMembers(roster) {
		if row.Instance.String() != instance {
			continue
		}
		m.cfg.Log.Info("peer asked to run a program", "peer", instance, "generation", roster.Gen)
		c, err := m.fence.cfg.dial(row)
		return c, roster.Gen, err
	}
	return nil, 0, fmt.Errorf("%w in generation %d: %s", status.ErrNoPeer, roster.Gen, instance)
}

// How long a peer's program waits for the process here: the gang is released at once, but not everywhere begins as
// fast.
const (
	readyPatience = time.Minute
	readyPoll     = 20 * time.Millisecond
)

// ready waits until the process of that generation runs here: a program of the gang that runs before it would find the
// variables and files of another life.
func (m *Member) ready(ctx context.Context, generation int) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		s := m.cfg.Loop.State()
		switch {
		case s.Gen > generation:
			return fmt.Errorf("generation %d is over: %s is of %d", generation, s.Instance, s.Gen)
		case s.Gen == generation && s.Phase == machine.Running && s.Up:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not run in generation %d: it is %s", s.Instance, generation, s.Phase)
		case <-tick.C:
		}
	}
}
