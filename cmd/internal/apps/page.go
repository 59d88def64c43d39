package apps

import (
	"context"
	"fmt"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Registry is what is asked about an app: its registry, or a page that answers in its place.
type Registry interface {
	Status(ctx context.Context, app string) (consul.Status, error)
	Definition(ctx context.Context, app string, r registry.AppRecord) (string, error)
	Verdict(ctx context.Context, app, run string) (*registry.Verdict, error)
	WaitVerdict(ctx context.Context, app, run string) (registry.Verdict, error)
	Ask(ctx context.Context, app string, ask registry.Ask) error
	AskAgain(ctx context.Context, app string, ask registry.Ask) (again bool, err error)
	Close()
}

// Page is a page of muster ui, which answers in place of a registry and of the agents on other hosts: this host need
// not reach them. What it refuses is an error with the exit code that belongs to it.
type Page interface {
	Registry
	// Address is the registry whose apps it shows.
	Address(ctx context.Context) (registry.Address, error)
	All(ctx context.Context) (Listing, error)
	// States are those of the agents that answer it, by instance.
	States(ctx context.Context, app string) (map[string]status.State, error)
	// Agent is the API of an instance's agent, as far as its user may look and act.
	Agent(app, instance string) *status.Client
	MayAct(ctx context.Context) error
}

// Open opens an app's registry, or the page that answers for it.
func (k Lookup) Open(address registry.Address) (Registry, error) {
	if k.Page != nil {
		return k.Page, nil
	}
	return Open(address)
}

// rowsOfPage are the apps of the page and those of this host.
func (k Lookup) rowsOfPage(ctx context.Context) ([]Row, error) {
	all, err := k.Page.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range all.Warnings {
		fmt.Fprintln(k.Warn, wording.Printable(strings.TrimSpace(text)))
	}
	k.Page = nil
	return k.ListAlso(ctx, all.Apps, k.State), nil
}

// Agent is the API of an instance's agent on another host; nil: it has none, or none that is reached from here.
func (f *Facts) Agent(instance string) *status.Client {
	if f.Registry == nil {
		return nil
	}
	for _, m := range f.Registry.Members {
		if m.Live && m.Instance.String() == instance {
			return f.peer(m)
		}
	}
	return nil
}

// peer is the API of a member's agent, wherever it is; nil: it cannot be asked from here.
func (f *Facts) peer(m consul.MemberStatus) *status.Client {
	switch {
	case m.Peer == "":
		return nil
	case f.page != nil:
		return f.page.Agent(f.ID, m.Instance.String())
	case f.Registry.App.Token == "":
		return nil
	}
	return status.DialPeer(m.Peer, f.Registry.App.Token)
}
