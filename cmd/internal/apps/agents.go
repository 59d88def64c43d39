package apps

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"sync"

	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
)

// AskPeers asks the agents on other hosts that listen there, and can be reached from here, with the run's token.
func (f *Facts) AskPeers(ctx context.Context) {
	if f.Registry == nil || f.Past != nil {
		return
	}
	if f.page != nil {
		f.Peers, _ = f.page.States(ctx, f.ID) // of who does not answer the registry's word stands
		return
	}
	f.Peers = AskAgents(ctx, nil, slices.DeleteFunc(slices.Clone(f.Registry.Members), func(m consul.MemberStatus) bool {
		_, here := f.States[m.Instance.String()]
		return here
	}), f.Registry.App.Token)
}

// AskPeer asks the agent of one instance on another host. It returns the address at which that agent has shown the key
// of the member's record: names, and what the agent says of itself, are its owner's word. There is none of an instance
// of this host.
func (f *Facts) AskPeer(ctx context.Context, instance string) (at netip.Addr, err error) {
	var m consul.MemberStatus
	token := ""
	if f.Registry != nil {
		token = f.Registry.App.Token
		i := slices.IndexFunc(f.Registry.Members, func(m consul.MemberStatus) bool {
			return m.Instance.String() == instance
		})
		if i >= 0 {
			m = f.Registry.Members[i]
		}
	}
	if _, here := f.States[instance]; here || f.Local != nil && !m.Live {
		return at, nil
	}
	if !m.Live || m.Peer == "" || token == "" {
		return at, fmt.Errorf("%s/%s has no agent that could be asked: muster status %s says how it is", f.ID, instance,
			f.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if from, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String()); err == nil {
			at = from.Addr().Unmap()
		}
	}})
	agent := status.DialPeer(m.Peer, token)
	defer agent.Close()
	st, err := agent.State(ctx)
	if err == nil && st.Inc != m.Inc {
		err = errors.New("another agent of it answers")
	}
	if err == nil && !at.IsValid() {
		err = errors.New("its address is not known")
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s/%s: %w", f.ID, instance, err)
	}
	f.Peers = map[string]status.State{instance: st}
	return at, nil
}

// Elsewhere are the agents of other hosts that have answered, by instance, and the live members that have not, each
// with its host. The caller closes the clients.
func (f *Facts) Elsewhere() (agents map[string]Agent, silent []string) {
	agents = map[string]Agent{}
	if f.Past != nil {
		for _, name := range f.Past.Instances() {
			agents[name] = keptAgent{f.Past, name}
		}
		return agents, nil
	}
	if f.Registry == nil {
		return agents, nil
	}
	for _, m := range f.Registry.Members {
		name := m.Instance.String()
		_, here := f.States[name]
		_, answered := f.Peers[name]
		switch {
		case here || !m.Live:
		case answered && m.Peer != "":
			agents[name] = f.peer(m)
		default:
			silent = append(silent, name+" on "+HostOf(m))
		}
	}
	return agents, silent
}

// mostAsked bounds how many agents are asked, and askedAtOnce how many of them at a time.
const (
	mostAsked   = 2048
	askedAtOnce = 256
)

// AskAgents asks members that are alive for their state: those of this host by their sockets, others where they listen.
// Who does not answer is left out.
func AskAgents(
	ctx context.Context, sockets map[string]string, members []consul.MemberStatus, token string,
) map[string]status.State {
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	said := map[string]status.State{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	asked, free := 0, make(chan struct{}, askedAtOnce)
	for _, m := range members {
		path, here := sockets[m.Instance.String()]
		there := m.Peer != "" && token != ""
		if !m.Live || !here && !there || asked == mostAsked {
			continue
		}
		asked++
		ask := func(agent *status.Client) bool {
			defer agent.Close()
			st, err := agent.State(ctx)
			if err != nil || st.Inc != m.Inc {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			said[m.Instance.String()] = st
			return true
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if !(here && ask(status.Dial(path))) && there { // an earlier agent may have left a socket here
				ask(status.DialPeer(m.Peer, token))
			}
		})
	}
	wg.Wait()
	return said
}

// AskSockets asks all agents at once; those that do not answer are left out.
func AskSockets(ctx context.Context, sockets map[string]string) map[string]status.State {
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	found := map[string]status.State{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, path := range sockets {
		wg.Go(func() {
			c := status.Dial(path)
			defer c.Close()
			st, err := c.State(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[name] = st
		})
	}
	wg.Wait()
	return found
}
