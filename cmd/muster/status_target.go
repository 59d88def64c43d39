package main

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

// target is what a word on the command line names: an app, or one instance of it.
type target struct {
	app      string
	instance *registry.Instance
}

// target reads `APP/COMPONENT-INDEX`, `COMPONENT-INDEX` of the newest app on this host (which is then
// named on stderr) and, where an app alone will do, `APP`. A word that names an app of this host and
// could be an instance too is the app.
func (k lookup) target(word string, appWillDo bool) (target, error) {
	if app, name, ok := strings.Cut(word, "/"); ok {
		in, err := registry.ParseInstance(name)
		if err != nil || !appdef.ValidName(app) {
			return target{}, exit.Usagef("%q: want APP/COMPONENT-INDEX, such as d1/worker-0", word)
		}
		return target{app, &in}, nil
	}
	apps, err := k.state.Apps()
	if err != nil {
		return target{}, err
	}
	if appWillDo {
		for _, app := range apps {
			if app.App == word {
				return target{app: word}, nil
			}
		}
	}
	in, err := registry.ParseInstance(word)
	switch {
	case err != nil && appWillDo:
		return target{}, k.unknownApp(word, registry.Address{})
	case err != nil:
		return target{}, exit.Usagef("%q: want [APP/]COMPONENT-INDEX, such as d1/worker-0", word)
	case len(apps) == 0:
		return target{}, exit.Usagef("%s: no app on this host; give APP/%s and the --state-dir that its agents were given", word, word)
	}
	fmt.Fprintf(k.warn, "app %s, the newest on this host\n", apps[0].App)
	return target{apps[0].App, &in}, nil
}

// agent finds the instance that a word names and opens its agent's API, which answers on the agent's own host only.
func (k lookup) agent(ctx context.Context, word string) (target, *status.Client, error) {
	t, err := k.target(word, false)
	if err != nil {
		return t, nil, err
	}
	known := k.state.Sockets(t.app)
	if path, ok := known[t.instance.String()]; ok {
		return t, status.Dial(path), nil
	}
	if err := k.mustGoOn(ctx, t.app); err != nil {
		return t, nil, err
	}
	return t, nil, exit.Usagef("no agent of %s/%s on this host; here are: %s; muster status %s says where it runs",
		t.app, t.instance, wording.OrNone(slices.Sorted(maps.Keys(known))), t.app)
}
