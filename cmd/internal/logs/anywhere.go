package logs

import (
	"context"
	"fmt"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

// mostSilent is how many of the agents that do not answer are named.
const mostSilent = 5

// Anywhere is a reader of the logs of a target, or of all instances of its app, on this host and on others; end closes
// its connections. Agents that do not answer are named on the lookup's Warn.
func Anywhere(ctx context.Context, k apps.Lookup, t apps.Target) (l Reader, end func(), err error) {
	facts, err := factsOf(ctx, k, t)
	if err != nil {
		return l, nil, err
	}
	l = Reader{Lookup: k, Facts: facts}
	var silent []string
	l.Elsewhere, silent = facts.Elsewhere()
	if facts.Past != nil {
		return l, func() {}, l.logged(ctx, t)
	}
	if len(silent) > 0 && t.Instance == nil && len(l.names()) > 0 { // else the reader's error says it
		fmt.Fprintf(k.Warn, "%s: no answer from %s\n", t.App, wording.First(silent, mostSilent))
	}
	return l, func() {
		for _, agent := range l.Elsewhere {
			agent.Close()
		}
	}, nil
}

// logged leaves those instances out whose logs the history store does not have.
func (l Reader) logged(ctx context.Context, t apps.Target) error {
	for name := range l.Elsewhere {
		if !l.Facts.Past.Logged(ctx, name) {
			delete(l.Elsewhere, name)
		}
	}
	asked := t.App
	if t.Instance != nil {
		asked += "/" + t.Instance.String()
	}
	if len(l.Elsewhere) == 0 || t.Instance != nil && l.Elsewhere[t.Instance.String()] == nil {
		return exit.Usagef("%s: its logs are not in %s: history.logs of the policy, or --history-logs, says which are "+
			"kept", asked, l.Facts.Past.URL)
	}
	return nil
}

// factsOf are this host's, and for instances of other hosts the registry's with their agents' answers.
func factsOf(ctx context.Context, k apps.Lookup, t apps.Target) (apps.Facts, error) {
	if k.Past.Alone {
		return k.App(ctx, t.App)
	}
	facts, err := k.OnHost(ctx, t.App)
	if err != nil {
		return facts, err
	}
	if facts.Local != nil {
		_, alone := facts.Local.Registry.Socket()
		here := t.Instance != nil && facts.LogDirs()[t.Instance.String()] != ""
		if alone || here {
			return facts, nil
		}
	}
	all, err := k.App(ctx, t.App)
	switch {
	case err != nil && facts.Local != nil: // what this host has needs no token
		fmt.Fprintf(k.Warn, "%v: this is what this host has\n", err)
		return facts, nil
	case err != nil:
		return facts, err
	case all.Local == nil && all.Registry == nil:
		return all, k.UnknownApp(t.App, registry.Address{})
	}
	all.AskPeers(ctx)
	return all, nil
}
