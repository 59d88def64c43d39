package main

import (
	"context"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/submit"
)

// runsOf asks a registry, and the agents that can be reached from here, for what follows runs.
type runsOf struct {
	lookup  apps.Lookup
	address registry.Address
}

func (r runsOf) Status(ctx context.Context, app string) (consul.Status, error) {
	return r.lookup.Status(ctx, r.address, app)
}

func (r runsOf) Complete(ctx context.Context, st *consul.Status) {
	r.lookup.Complete(ctx, r.address, st)
}

func (r runsOf) Verdict(ctx context.Context, app, run string) (*registry.Verdict, error) {
	c, err := r.lookup.Open(r.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	return c.Verdict(ctx, app, run)
}

func (r runsOf) Ask(ctx context.Context, app string, ask registry.Ask) error {
	return r.lookup.Ask(ctx, r.address, app, ask)
}

func (r runsOf) Agents(
	ctx context.Context, app string, members []consul.MemberStatus, token string,
) map[string]status.State {
	if page := r.lookup.Page; page != nil {
		states, _ := page.States(ctx, app) // who does not answer is left out
		return states
	}
	return apps.AskAgents(ctx, r.lookup.State.Sockets(app), members, token)
}

func (r runsOf) View(app string, st *consul.Status) submit.View {
	v := view.Of(apps.Facts{ID: app, Address: r.address, Registry: st})
	return submit.View{Instances: v.Instances, Missing: v.Missing, Verdict: v.Verdict}
}

func (r runsOf) Error(err error) error { return apps.RegistryError(r.address, err) }
