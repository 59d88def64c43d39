package apps

import (
	"context"
	"sync"

	"github.com/muster-agent/muster/shim/status"
)

// atOnce bounds how many agents are asked in one moment.
const atOnce = 128

// EachAgent calls ask with the agents of an app: those of this host that have answered, and those of all its members on
// other hosts that listen there. It returns what each says, by instance; who says nothing in time is left out.
func EachAgent[T any](
	ctx context.Context, k Lookup, f *Facts, ask func(context.Context, *status.Client) (T, error),
) map[string]T {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	said := map[string]T{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for name, dial := range k.agents(f) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-turn }()
			ctx, cancel := context.WithTimeout(ctx, socketPatience)
			defer cancel()
			agent := dial()
			defer agent.Close()
			answer, err := ask(ctx, agent)
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

// agents are how the agents of an app are reached, by instance.
func (k Lookup) agents(f *Facts) map[string]func() *status.Client {
	all := map[string]func() *status.Client{}
	if f.Registry != nil {
		for _, m := range f.Registry.Members {
			if agent := f.peer(m); m.Live && agent != nil {
				all[m.Instance.String()] = func() *status.Client { return agent }
			}
		}
	}
	sockets := k.State.Sockets(f.ID)
	for name := range f.States {
		all[name] = func() *status.Client { return status.Dial(sockets[name]) }
	}
	return all
}
