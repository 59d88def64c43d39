package member

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
)

// adopter brings a registry forward that went back to an older copy of the running app: else newcomers would begin a
// generation again that members have left behind. A registry that has nothing of the app is left alone, for a person
// may have deleted it.
type adopter struct {
	every time.Duration
	adopt func(context.Context) (status.Adopted, error)
	log   *slog.Logger

	work sync.WaitGroup
	mu   sync.Mutex
	stop context.CancelFunc // nil before the claim
}

// watch begins with the claim and ends with close.
func (a *adopter) watch(ctx context.Context, membership *consul.Membership) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the effect that claims the index
	a.mu.Lock()
	a.stop = cancel
	a.mu.Unlock()
	a.work.Go(func() {
		look := time.NewTicker(a.every)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if !membership.WentBack() {
				continue
			}
			if _, err := a.adopt(ctx); err != nil && !errors.Is(err, consul.ErrNothingLost) {
				a.log.Warn("registry went back, and the app's data was not written again", "err", err)
			}
		}
	})
}

func (a *adopter) close() {
	a.mu.Lock()
	stop := a.stop
	a.mu.Unlock()
	if stop != nil {
		stop()
	}
	a.work.Wait()
}
