package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint"
)

// commit has the registry take what is in the store. What it refuses for good is of a generation that is over, or of an index
// that is another's: that is taken away again.
func (k *uploader) commit(ctx context.Context) {
	k.mu.Lock()
	pending := slices.Clone(k.pending)
	k.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	// Not called off with the process: of one whose time is over the registry's word is what takes its copy away.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	newest := pending[len(pending)-1]
	var steps []registry.CheckpointStep
	for _, one := range pending {
		if one.gen == newest.gen {
			steps = append(steps, one.step)
		}
	}
	err := k.m.cfg.Registry().Store(bounded, newest.gen, steps...)
	if err != nil && !refusedForGood(err) {
		k.m.cfg.Log.Warn("checkpoint is not committed yet", "step", newest.step.Step, "err", err)
		return
	}
	for _, one := range pending {
		if err != nil || one.gen != newest.gen {
			k.refuse(ctx, one, cmp.Or(err, registry.ErrOvertaken))
		}
	}
	k.over(newest, err)
	if err == nil {
		k.m.cfg.Notices.Mended(warnCheckpoints, fmt.Sprintf("checkpoints are stored again, step %d in %s", newest.step.Step, k.m.plan.Checkpoint.Sync))
		k.prune(ctx, newest.kept.Instance)
	}
}

// over notes what became of what was pending. What came too late for its generation may be what the next goes on from: it is
// copied under that one when it is seen there again.
func (k *uploader) over(newest uploaded, err error) {
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

func (k *uploader) refuse(ctx context.Context, one uploaded, why error) {
	if k.committed(ctx, one) {
		return // by a try whose answer was lost
	}
	k.m.cfg.Log.Warn("checkpoint of an older generation is refused, and taken away", "step", one.step.Step, "generation", one.gen, "at", one.step.URI, "err", why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	if err := k.vault.Remove(ctx, one.kept); err != nil {
		k.m.cfg.Log.Warn("take a refused checkpoint away", "at", one.step.URI, "err", err)
	}
}

// committed tells that the registry names it, or cannot be asked.
func (k *uploader) committed(ctx context.Context, one uploaded) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	stored, err := k.m.cfg.Registry().Stored(ctx)
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
func (k *uploader) prune(ctx context.Context, instance string) {
	if err := k.trim(ctx, instance); err != nil && ctx.Err() == nil {
		k.m.cfg.Log.Warn("remove old checkpoints of the store", "err", err)
	}
}

func (k *uploader) trim(ctx context.Context, instance string) error {
	stored, err := k.m.cfg.Registry().Stored(ctx)
	if err == nil {
		k.tellApart(stored)
		err = k.m.cfg.Registry().Trim(ctx, k.least(stored))
	}
	if k.m.plan.Checkpoint.Keep <= 0 || err != nil {
		return err
	}
	if stored, err = k.m.cfg.Registry().Stored(ctx); err != nil {
		return err
	}
	return k.vault.Keep(ctx, instance, k.m.plan.Checkpoint.Keep, k.least(stored), namedBy(stored), func(c checkpoint.Kept) error {
		return k.m.cfg.Registry().Forget(ctx, k.url(c)) // the registry names nothing that is gone
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
func (k *uploader) tellApart(stored map[registry.Instance]registry.Checkpoint) {
	why, first := k.m.cfg.Facts().Differing(k.m.cfg.Registry().Directive(), stored)
	if why == "" || first != k.m.cfg.Loop.State().Instance {
		k.m.cfg.Notices.Mended(warnApart, "a stored checkpoint is everybody's, or another rank tells of it")
		return
	}
	k.m.cfg.Notices.Warn(warnApart, "no stored checkpoint is everybody's, so a restart would begin anew: "+why+"; muster.checkpoint.ranks=some where not every rank saves")
}

// least is the oldest step that must stay.
func (k *uploader) least(stored map[registry.Instance]registry.Checkpoint) int64 {
	return k.m.cfg.Facts().LeastStep(k.m.cfg.Registry().Directive(), stored, k.m.cfg.Loop.State().Instance)
}
