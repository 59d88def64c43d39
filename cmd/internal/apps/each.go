package apps

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/muster-agent/muster/shim/status"
)

// EachAgent calls ask with the agents of the app that have answered before, those of AskPeers included, all at once:
// what each says in time, by instance. Those that now say nothing are left out.
func EachAgent[T any](
	ctx context.Context, k Lookup, f *Facts, ask func(context.Context, *status.Client) (T, error),
) map[string]T {
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	agents := map[string]*status.Client{}
	elsewhere, _ := f.Elsewhere()
	for name, agent := range elsewhere {
		if c, lives := agent.(*status.Client); lives {
			agents[name] = c
		}
	}
	sockets := k.State.Sockets(f.ID)
	for name := range f.States {
		agents[name] = status.Dial(sockets[name])
	}
	said := map[string]T{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		wg.Go(func() {
			defer agents[name].Close()
			answer, err := ask(ctx, agents[name])
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			said[name] = answer
		})
	}
	wg.Wait()
	return said
}
