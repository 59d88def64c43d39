package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Target is what a word on the command line names: an app, or one instance of it.
type Target struct {
	App      string
	Instance *registry.Instance
	host     string // of its agent; "": this one
}

// Target reads `APP/COMPONENT-INDEX`, `COMPONENT-INDEX` of the newest app on this host (which is then
// named on stderr) and, where an app alone will do, `APP`. A word that names an app of this host and
// could be an instance too is the app. Where a registry was named, an app alone need not be of this host.
func (k Lookup) Target(word string, appWillDo bool) (Target, error) {
	if app, name, ok := strings.Cut(word, "/"); ok {
		in, err := registry.ParseInstance(name)
		if err != nil || !appdef.ValidName(app) {
			return Target{}, exit.Usagef("%q: want APP/COMPONENT-INDEX, such as d1/worker-0", word)
		}
		return Target{App: app, Instance: &in}, nil
	}
	if k.Past.Alone && appWillDo && appdef.ValidName(word) {
		return Target{App: word}, nil
	}
	apps, err := k.State.Apps()
	if err != nil {
		return Target{}, exit.With(exit.Forbidden, err)
	}
	if appWillDo {
		for _, app := range apps {
			if app.App == word {
				return Target{App: word}, nil
			}
		}
	}
	in, err := registry.ParseInstance(word)
	switch {
	case err == nil && appWillDo && k.Page != nil && len(apps) == 0:
		return Target{App: word}, nil
	case err != nil && appWillDo && (k.Named || k.Past.Store != nil) && appdef.ValidName(word): // they may know it
		return Target{App: word}, nil
	case err != nil && appWillDo:
		return Target{}, k.UnknownApp(word, registry.Address{})
	case err != nil:
		return Target{}, exit.Usagef("%q: want [APP/]COMPONENT-INDEX, such as d1/worker-0", word)
	case len(apps) == 0:
		return Target{}, exit.Usagef("%s: no app on this host; give APP/%s and the --state-dir that its agents were "+
			"given", word, word)
	}
	fmt.Fprintf(k.Warn, "app %s, the newest on this host\n", apps[0].App)
	return Target{App: apps[0].App, Instance: &in}, nil
}

// Agent finds the instance that a word names and opens its agent's API: on this host by its socket, on another one with
// the run's token and a grant, for which the agent acts once.
func (k Lookup) Agent(ctx context.Context, word string) (Target, *status.Client, error) {
	t, err := k.Target(word, false)
	if err != nil {
		return t, nil, err
	}
	if err := k.State.Trusted(); err != nil {
		return t, nil, exit.With(exit.Forbidden, err)
	}
	known := k.State.Sockets(t.App)
	if path, ok := known[t.Instance.String()]; ok {
		return t, status.Dial(path), nil
	}
	if c, err := k.agentElsewhere(ctx, &t); c != nil || err != nil {
		return t, c, err
	}
	if err := k.mustGoOn(ctx, t.App); err != nil {
		return t, nil, err
	}
	return t, nil, exit.Usagef("no agent of %s/%s on this host; here are: %s; muster status %s says where it runs",
		t.App, t.Instance, wording.OrNone(slices.Sorted(maps.Keys(known))), t.App)
}

// Act has the agent of the instance that a word names do something, and waits for its answer as long as for that of a
// registry. The target's instance is set once an agent was asked.
func (k Lookup) Act(ctx context.Context, word string, do func(context.Context, *status.Client) error) (Target, error) {
	t, agent, err := k.Agent(ctx, word)
	if err != nil {
		return Target{}, err
	}
	defer agent.Close()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return t, do(ctx, agent)
}

// agentElsewhere opens the API of an agent on another host, which it notes in the target; nil: the app has no registry
// that other hosts reach.
func (k Lookup) agentElsewhere(ctx context.Context, t *Target) (*status.Client, error) {
	f, err := k.OnHost(ctx, t.App)
	if err != nil {
		return nil, err
	}
	address, err := k.registryOf(ctx, f)
	_, local := address.Socket()
	if err != nil || k.Page == nil && (address.IsZero() || local || f.Local == nil && !k.Named) {
		return nil, err
	}
	if f, err = k.App(ctx, t.App); err != nil || f.Registry == nil {
		return nil, err
	}
	i := slices.IndexFunc(f.Registry.Members, func(m consul.MemberStatus) bool { return m.Instance == *t.Instance })
	switch {
	case i < 0:
		return nil, f.NoInstance(*t.Instance)
	case !f.Registry.Members[i].Live && f.Over() != nil:
		return nil, f.Over()
	case !f.Registry.Members[i].Live:
		return nil, fmt.Errorf("%s/%s has no agent any more: muster status %[1]s says how it ended", t.App, t.Instance)
	case f.peer(f.Registry.Members[i]) == nil:
		return nil, f.OwnHostOnly(f.Registry.Members[i])
	}
	t.host = HostOf(f.Registry.Members[i])
	if k.Page != nil {
		return f.peer(f.Registry.Members[i]), k.Page.MayAct(ctx)
	}
	c, err := Open(f.Address)
	if err != nil {
		return nil, err
	}
	grant, revoke, err := c.Grant(ctx, t.App, *t.Instance)
	if err != nil {
		c.Close()
		return nil, RegistryError(f.Address, err)
	}
	agent := f.peer(f.Registry.Members[i])
	return agent.Acting(grant, func() { revoke(); c.Close() }), nil
}

// mustGoOn is an error when the app is unknown here, or over.
func (k Lookup) mustGoOn(ctx context.Context, app string) error {
	facts, err := k.OnHost(ctx, app)
	switch {
	case err != nil:
		return err
	case facts.Local == nil:
		return k.UnknownApp(app, registry.Address{})
	}
	return facts.Over()
}
