package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/status"
)

// peers are the instances that this one's processes may start programs in: those of a job that mpirun starts. Others
// have none, and no other host can ask them for anything.
func (a *agent) peers() *status.Peers {
	if a.currentPlan().MPI == nil {
		return nil
	}
	return &status.Peers{Self: a.loop.State().Instance.String(), Reach: a.reach, Ready: a.ready}
}

// reach is the way to a peer's agent, and the generation that both must be of: by its socket on this host, else by its
// address with the run's token.
func (a *agent) reach(_ context.Context, instance string) (*status.Client, int, error) {
	a.mu.Lock()
	roster := a.roster
	a.mu.Unlock()
	for _, row := range plan.MPIMembers(roster) {
		if row.Instance.String() != instance {
			continue
		}
		a.log.Info("program for a peer", "peer", instance, "generation", roster.Gen)
		c, err := a.wayTo(row)
		return c, roster.Gen, err
	}
	return nil, 0, fmt.Errorf("%w in generation %d: %s", status.ErrNoPeer, roster.Gen, instance)
}

// How long a peer's program waits for the process here: the gang is released at once, but not everywhere begins as fast.
const (
	readyPatience = time.Minute
	readyPoll     = 20 * time.Millisecond
)

// ready waits until the process of that generation runs here: a program of the gang's before it would find the
// variables and files of another life.
func (a *agent) ready(ctx context.Context, generation int) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		s := a.loop.State()
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

// newToken is what the founder of a run has its agents show each other.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// listenForPeers answers other hosts where members may be elsewhere: they ask each other whether the registry is away,
// and an MPI job starts programs. The address is published with the rest. Who is alone listens too, for a flex may give it peers;
// without a port it does without them.
func (r stageRoom) listenForPeers(p plan.Plan, logDir string) error {
	if r.apiListen == "" && loopback(r.alloc.Host) { // then nobody is anywhere else
		return nil
	}
	l, address, err := r.peerListener()
	if alone := p.MPI == nil && p.Who.WorldSize <= 1 && len(r.app.Components) == 1; err != nil && alone && r.apiListen == "" {
		r.log.Warn("no peer that comes later can ask this agent anything", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.peerAddr = address
	r.mu.Unlock()
	r.log.Info("other hosts are answered", "address", address)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := status.Serve(ctx, l, status.PeerHandler(r.source(logDir), r.seat.Token())); err != nil {
			r.log.Warn("API for other hosts", "err", err)
		}
	}()
	r.atEnd(func() {
		cancel()
		<-done
	})
	return nil
}

// peerListener listens where --api-listen says, else at a port of the range.
func (r stageRoom) peerListener() (l net.Listener, address string, err error) {
	if r.apiListen == "" {
		return r.claimListener()
	}
	if l, err = net.Listen("tcp", r.apiListen); err != nil {
		return nil, "", fmt.Errorf("--api-listen: %w", err)
	}
	host, _, err := net.SplitHostPort(r.apiListen)
	if err != nil || host == "" || net.ParseIP(host).IsUnspecified() {
		host = r.alloc.Host
	}
	return l, net.JoinHostPort(host, portOf(l)), nil
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String()) // a listener's address has one
	return port
}

// apiPort names the port in the lists of ports.
const apiPort = "muster.api"

// claimListener takes a port as the app's are taken, the one of the last agent here if it can be had. What is claimed is
// free of other agents; a stranger may still be faster than the listening.
func (r stageRoom) claimListener() (l net.Listener, address string, err error) {
	asked, err := ports.ParseRanges(r.ports)
	if err != nil {
		return nil, "", fault.Definition(fmt.Errorf("--ports: %w", err))
	}
	usable, _, err := ports.Usable(asked, "") // its warning has been told
	if err != nil {
		return nil, "", err
	}
	prefer := map[string]int{}
	if before := r.seat.Previous(); before != nil && before.Machine == r.facts.Machine {
		if _, port, err := net.SplitHostPort(before.Peer); err == nil {
			prefer[apiPort], _ = strconv.Atoi(port) // 0: none
		}
	}
	const tries = 5
	for range tries {
		held, claimErr := ports.Claim(usable, []ports.Want{{Name: apiPort}}, prefer)
		if claimErr != nil {
			return nil, "", claimErr
		}
		if err = held.Release(); err == nil {
			if l, err = listenOn(r.alloc.Host, held.Ports()[apiPort]); err == nil {
				r.atEnd(func() { _ = held.Close() }) // nobody listens there any more
				return l, net.JoinHostPort(r.alloc.Host, portOf(l)), nil
			}
		}
		err, prefer = errors.Join(err, held.Close()), nil
	}
	return nil, "", fmt.Errorf("listen for other hosts: %w", err)
}

// listenOn listens at the address that peers know, or at all where this host does not have it itself.
func listenOn(host string, port int) (net.Listener, error) {
	number := strconv.Itoa(port)
	l, err := net.Listen("tcp", net.JoinHostPort(host, number))
	if err != nil {
		return net.Listen("tcp", ":"+number)
	}
	return l, nil
}

// layProgram leaves muster itself where mpirun finds it: in an image that has nothing of ours, and for a user who may
// not read the folder that this program lies in. It is a copy, so that nothing that is done to it is done to the host's.
func layProgram(work files.Folder, p plan.Plan) error {
	if p.MPI == nil {
		return nil
	}
	if strings.ContainsAny(p.Process.Folder, " \t\n:") {
		return fault.Definition(fmt.Errorf("the work folder is %q, want a path without blanks and colons, at which mpirun would split it: --work-dir", work.Name()))
	}
	if !p.MPI.Launches {
		return nil
	}
	return stageItem(work, plan.StageItem{
		Name: "muster", Kind: plan.StageFile, From: "/proc/self/exe", To: filepath.Join(p.Process.Folder, plan.MPIProgram),
	})
}
