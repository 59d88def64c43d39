package member

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/wait"
)

// announce has the name registered before any peer may use it: the gang is released when all have acknowledged.
// It waits while the registry is unreachable; the error is registry.ErrForbidden, registry.ErrMalformed, or ctx's.
func (m *Member) announce(ctx context.Context) error {
	d := m.services()
	if d == nil || !d.byName() {
		return nil
	}
	d.turn.Lock()
	d.named = true
	d.turn.Unlock()
	for {
		err := d.reconcileNow(ctx)
		d.report(err)
		if err == nil {
			break
		}
		if errors.Is(err, registry.ErrForbidden) || errors.Is(err, registry.ErrMalformed) {
			return err
		}
		if err := wait.For(ctx, discoveryAgain); err != nil {
			return err
		}
	}
	d.awaitCatalog(ctx)
	d.first.Do(func() { close(d.announced) })
	return nil
}

// awaitCatalog waits until Consul's servers have what its agent has registered; a token that cannot see it does not
// wait.
func (d *discovery) awaitCatalog(ctx context.Context) {
	d.turn.Lock()
	defer d.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	for _, id := range slices.Sorted(maps.Keys(d.services)) {
		for poll := seenPoll; !d.blind && ctx.Err() == nil; poll = min(2*poll, seenSlow) {
			seen, blind, err := d.cfg.client.Seen(ctx, d.services[id].Service, indexTag(d.plan.Who.Index))
			if d.blind = blind; seen {
				break
			}
			if err != nil {
				d.cfg.log.Debug("catalog of Consul not read", "err", err)
			}
			if wait.For(ctx, poll) != nil {
				d.cfg.log.Warn("service is not in the catalog yet", "service", id)
			}
		}
	}
}
