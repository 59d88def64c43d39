package ask

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// Adopt has an agent of this host write the app's data again into the registry that has lost it: of several the one
// that has come furthest.
func Adopt(ctx context.Context, s console.Streams, k apps.Lookup, app string) error {
	facts, err := k.OnHost(ctx, app)
	switch {
	case err != nil:
		return err
	case facts.Local == nil:
		return k.UnknownApp(app, registry.Address{})
	case !facts.Living():
		return exit.With(exit.Registry, fmt.Errorf("%s: no agent of it lives on this host: muster adopt asks one that "+
			"still knows what the registry has lost", app))
	}
	names := slices.SortedFunc(maps.Keys(facts.States), func(a, b string) int {
		return cmp.Or(cmp.Compare(facts.States[b].Generation, facts.States[a].Generation), cmp.Compare(a, b))
	})
	sockets := k.State.Sockets(app)
	var refusal error // of the agent that has come furthest
	for _, name := range names {
		adopted, err := adoptBy(ctx, sockets[name])
		if err == nil {
			fmt.Fprintf(s.Out, "%s: run %s, generation %d is in the registry again, written by %s\n", app, adopted.Run,
				adopted.Gen, name)
			return nil
		}
		if refusal == nil {
			refusal = fmt.Errorf("adopt %s/%s: %w", app, name, err)
		}
	}
	return refusal
}

func adoptBy(ctx context.Context, socket string) (status.Adopted, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*apps.Patience)
	defer cancel()
	c := status.Dial(socket)
	defer c.Close()
	return c.Adopt(ctx)
}
