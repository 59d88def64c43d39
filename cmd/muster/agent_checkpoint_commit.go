package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/plan"
)

// commit has the registry take what is in the store. What it refuses for good is of a generation that is over, or of an index
// that is another's: that is taken away again.
func (k *keeper) commit(ctx context.Context) {
	k.mu.Lock()
	pending := slices.Clone(k.pending)
	k.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	// Not called off with the process: of one whose time is over the registry's word is what takes its copy away.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatient)
	defer cancel()
	newest := pending[len(pending)-1]
	var steps []registry.CheckpointStep
	for _, one := range pending {
		if one.gen == newest.gen {
			steps = append(steps, one.step)
		}
	}
	err := k.a.seatNow().Store(bounded, newest.gen, steps...)
	if err != nil && !refusedForGood(err) {
		k.a.log.Warn("checkpoint is not committed yet", "step", newest.step.Step, "err", err)
		return
	}
	for _, one := range pending {
		if err != nil || one.gen != newest.gen {
			k.refuse(ctx, one, cmp.Or(err, registry.ErrOvertaken))
		}
	}
	k.over(newest, err)
	if err == nil {
		k.a.mended(warnCheckpoints, fmt.Sprintf("checkpoints are stored again, step %d in %s", newest.step.Step, k.plan.Checkpoint.Sync))
		k.prune(ctx, newest.kept.Instance)
	}
}

// over notes what became of what was pending. What came too late for its generation may be what the next goes on from: it is
// copied under that one when it is seen there again.
func (k *keeper) over(newest keptSave, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending = nil
	if !errors.Is(err, registry.ErrOvertaken) {
		k.done = newest.stamp
	}
	if err == nil {
		k.doneAt = newest.step.Step
	}
}

// refusedForGood tells that no later try will do.
func refusedForGood(err error) bool {
	return errors.Is(err, registry.ErrOvertaken) || errors.Is(err, registry.ErrSuperseded) || errors.Is(err, registry.ErrForbidden)
}

func (k *keeper) refuse(ctx context.Context, one keptSave, why error) {
	if k.committed(ctx, one) {
		return // by a try whose answer was lost
	}
	k.a.log.Warn("checkpoint of an older generation is refused, and taken away", "step", one.step.Step, "generation", one.gen, "at", one.step.URI, "err", why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
	defer cancel()
	if err := k.vault.Remove(ctx, one.kept); err != nil {
		k.a.log.Warn("take a refused checkpoint away", "at", one.step.URI, "err", err)
	}
}

// committed tells that the registry names it, or cannot be asked.
func (k *keeper) committed(ctx context.Context, one keptSave) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatient)
	defer cancel()
	stored, err := k.a.seatNow().Stored(ctx)
	if err != nil {
		return true
	}
	for _, c := range stored {
		if slices.ContainsFunc(c.Steps, func(s registry.CheckpointStep) bool { return s.URI == one.step.URI }) {
			return true
		}
	}
	return false
}

// prune has the registry name what the gang could still go on from and the newest, and removes what is beyond the newest
// muster.checkpoint.keep and not that.
func (k *keeper) prune(ctx context.Context, instance string) {
	if err := k.trim(ctx, instance); err != nil && ctx.Err() == nil {
		k.a.log.Warn("remove old checkpoints of the store", "err", err)
	}
}

func (k *keeper) trim(ctx context.Context, instance string) error {
	stored, err := k.a.seatNow().Stored(ctx)
	if err == nil {
		k.tellApart(stored)
		err = k.a.seatNow().Trim(ctx, k.least(stored))
	}
	if k.plan.Checkpoint.Keep <= 0 || err != nil {
		return err
	}
	if stored, err = k.a.seatNow().Stored(ctx); err != nil {
		return err
	}
	return k.vault.Keep(ctx, instance, k.plan.Checkpoint.Keep, k.least(stored), namedBy(stored), func(c checkpoint.Kept) error {
		return k.a.seatNow().Forget(ctx, k.url(c)) // the registry names nothing that is gone
	})
}

// namedBy tells of a stored checkpoint whether any key names it.
func namedBy(stored map[registry.Instance]registry.Checkpoint) func(checkpoint.Kept) bool {
	named := map[checkpoint.Kept]bool{}
	for _, c := range stored {
		for _, s := range c.Steps {
			if kept, ok := checkpoint.Named(s.URI); ok {
				named[kept] = true
			}
		}
	}
	return func(c checkpoint.Kept) bool { return named[c] }
}

// tellApart warns while there is time of what would throw everything away at the next failure; one of the ranks does.
func (k *keeper) tellApart(stored map[registry.Instance]registry.Checkpoint) {
	why, first := k.facts().Apart(k.a.seatNow().Directive(), stored)
	if why == "" || first != k.a.loop.State().Instance {
		k.a.mended(warnApart, "a stored checkpoint is everybody's, or another rank tells of it")
		return
	}
	k.a.warn(warnApart, "no stored checkpoint is everybody's, so a restart would begin anew: "+why+"; muster.checkpoint.ranks=some where not every rank saves")
}

func (k *keeper) facts() conductor.Facts {
	return plan.Gang(k.a.app.App, k.a.request(registry.Instance{}))
}

// least is the oldest step that must stay.
func (k *keeper) least(stored map[registry.Instance]registry.Checkpoint) int64 {
	return k.facts().LeastStep(k.a.seatNow().Directive(), stored, k.a.loop.State().Instance)
}
