package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/status"
)

// peerAPI answers peer agents of other hosts, with the run's token.
type peerAPI struct {
	listen Listen
	host   string // this agent's address
	log    *slog.Logger
	stop   context.CancelFunc
	work   sync.WaitGroup
	id     status.PeerIdentity // what it shows them
	port   *ports.Held         // that it listens at; nil: none of Listen.Ports

	mu      sync.Mutex
	address string // registry.JoinPeer; "": other hosts are not answered
}

// ServePeers answers peer agents where members may be on other hosts: they ask each other whether the registry is
// unreachable, and an MPI job starts programs. The address is published with the rest. An instance without peers
// listens too, for a flex may give it some; it runs all the same if it finds no port.
func (m *Member) ServePeers(ctx context.Context, p plan.Plan, source status.Source) error {
	a := &m.peerAPI
	if a.listen.Address == "" && isLoopback(a.host) { // then all peers are on this machine
		return nil
	}
	held := m.Membership()
	l, address, err := a.listener(m.previousPort())
	alone := p.MPI == nil && p.Who.WorldSize <= 1 && len(m.cfg.App.Components) == 1
	if err != nil && alone && a.listen.Address == "" {
		a.log.Warn("no API for peer agents: members that join later cannot ask this one", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	a.id, err = status.NewPeerIdentity(held.Token(), m.cfg.AppID, held.Instance().String())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	a.mu.Lock()
	a.address = registry.JoinPeer(address, a.id.Key)
	a.mu.Unlock()
	a.log.Info("API for peer agents", "address", address, "key", a.id.Key)
	ctx, a.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the staging
	a.work.Go(func() {
		err := status.ServePeers(ctx, l, a.id, status.PeerHandler(source, held.Token()), a.log)
		if err != nil {
			a.log.Warn("API for peer agents failed", "err", err)
		}
	})
	return nil
}

// Address is where peer agents of other hosts are answered, and with which key; "": nowhere.
func (a *peerAPI) Address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.address
}

func (a *peerAPI) close() {
	if a.stop != nil {
		a.stop()
	}
	a.work.Wait()
	if a.port != nil {
		_ = a.port.Close() // nobody listens there any more
	}
}

// previousPort is where the last agent of the index listened on this machine; 0: unknown.
func (m *Member) previousPort() int {
	before := m.Previous()
	if before == nil || before.Machine != m.cfg.Host.Self.Machine {
		return 0
	}
	address, _ := registry.SplitPeer(before.Peer)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	number, _ := strconv.Atoi(port) // 0 where it is none
	return number
}

// listener listens at --api-listen, else at a port of the range.
func (a *peerAPI) listener(prefer int) (l net.Listener, address string, err error) {
	if a.listen.Address == "" {
		return a.claimListener(prefer)
	}
	if l, err = net.Listen("tcp", a.listen.Address); err != nil {
		return nil, "", fmt.Errorf("--api-listen: %w", err)
	}
	host, _, err := net.SplitHostPort(a.listen.Address)
	if err != nil || host == "" || net.ParseIP(host).IsUnspecified() {
		host = a.host
	}
	return l, net.JoinHostPort(host, portOf(l)), nil
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String()) // a listener's address has one
	return port
}

// apiPort names the port in the lists of ports.
const apiPort = "muster.api"

// claimListener takes a port as the app's are taken, the preferred one if it can be had. What is claimed is free of
// other agents; a stranger may still be faster than the listening.
func (a *peerAPI) claimListener(preferred int) (l net.Listener, address string, err error) {
	usable, _, err := ports.Usable(a.listen.Ports, "") // its warning was logged when the app's were taken
	if err != nil {
		return nil, "", err
	}
	prefer := map[string]int{}
	if preferred > 0 {
		prefer[apiPort] = preferred
	}
	const tries = 5
	for range tries {
		held, claimErr := ports.Claim(usable, []ports.Want{{Name: apiPort}}, prefer)
		if claimErr != nil {
			return nil, "", claimErr
		}
		if err = held.Release(); err == nil {
			if l, err = listenOn(a.host, held.Ports()[apiPort]); err == nil {
				a.port = held
				return l, net.JoinHostPort(a.host, portOf(l)), nil
			}
		}
		err, prefer = errors.Join(err, held.Close()), nil
	}
	return nil, "", fmt.Errorf("listen for other hosts: %w", err)
}

// listenOn listens at the address that peers know, or at all addresses where this host does not have it itself.
func listenOn(host string, port int) (net.Listener, error) {
	number := strconv.Itoa(port)
	l, err := net.Listen("tcp", net.JoinHostPort(host, number))
	if err != nil {
		return net.Listen("tcp", ":"+number)
	}
	return l, nil
}

// isLoopback tells that a host has a loopback address, which is nobody's address to others.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// GiveRoster answers a peer of that rank with the packed roster, or with the address of the peer to ask instead.
func (m *Member) GiveRoster(ctx context.Context, id string, rank int) (packed []byte, next string, err error) {
	held := m.Membership()
	if held == nil {
		return nil, "", fmt.Errorf("no index yet: %w", registry.ErrNotYet)
	}
	return held.GiveRoster(ctx, id, rank)
}
