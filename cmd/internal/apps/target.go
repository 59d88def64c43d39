package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Target is what a word on the command line names: an app, or one instance of it.
type Target struct {
	App      string
	Instance *registry.Instance
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
		return Target{app, &in}, nil
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
	case err != nil && appWillDo && k.Named && appdef.ValidName(word): // the registry may know it
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
	return Target{apps[0].App, &in}, nil
}

// Agent finds the instance that a word names and opens its agent's API, which answers on the agent's own host only.
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
	if err := k.mustGoOn(ctx, t.App); err != nil {
		return t, nil, err
	}
	return t, nil, exit.Usagef("no agent of %s/%s on this host; here are: %s; muster status %s says where it runs",
		t.App, t.Instance, wording.OrNone(slices.Sorted(maps.Keys(known))), t.App)
}

// mustGoOn is an error when the app is unknown here, or over.
func (k Lookup) mustGoOn(ctx context.Context, app string) error {
	facts, err := k.OnHost(ctx, app)
	switch {
	case err != nil:
		return err
	case facts.Local == nil:
		return k.UnknownApp(app, registry.Address{})
	case facts.Living():
		return nil
	}
	if v := facts.Verdict(); v != nil {
		return fmt.Errorf("%s is over: %s", app, v.Outcome)
	}
	return nil
}
