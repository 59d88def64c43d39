package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// commit has the registry take what is in the store. What it refuses for good is of a generation that is over, or of an
// index that another agent holds: that is removed again.
func (u *uploader) commit(ctx context.Context) {
	u.mu.Lock()
	pending := slices.Clone(u.pending)
	u.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	// Not cancelled with the process: if its generation is over, only the registry's refusal removes the copy.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	newest := pending[len(pending)-1]
	var steps []registry.CheckpointStep
	for _, one := range pending {
		if one.gen == newest.gen {
			steps = append(steps, one.step)
		}
	}
	err := u.m.cfg.Registry().Store(bounded, newest.gen, steps...)
	if err != nil && !refusedForGood(err) {
		u.m.cfg.Log.Warn("checkpoint not committed yet", "step", newest.step.Step, "err", err)
		return
	}
	for _, one := range pending {
		if err != nil || one.gen != newest.gen {
			u.refuse(ctx, one, cmp.Or(err, registry.ErrOvertaken))
		}
	}
	u.finish(newest, err)
	if err != nil {
		return
	}
	text := fmt.Sprintf("checkpoints are stored again, step %d in %s", newest.step.Step, u.m.plan.Checkpoint.Sync)
	u.m.cfg.Notices.Mended(warnCheckpoints, text)
	u.pruned = u.tidy(ctx)
}

// tidy prunes; false: it has to be done again, once the conductor has found a newer common step.
func (u *uploader) tidy(ctx context.Context) (done bool) {
	done, err := u.prune(ctx)
	if err != nil && ctx.Err() == nil {
		u.m.cfg.Log.Warn("removing old checkpoints failed", "err", err)
	}
	return done
}

// finish notes what became of the pending checkpoints. What came too late for its generation may be what the next one
// resumes from: it is uploaded under that generation when it is seen again.
func (u *uploader) finish(newest uploaded, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending = nil
	if !errors.Is(err, registry.ErrOvertaken) {
		u.done = newest.stamp
	}
	if err == nil {
		u.doneAt = newest.step.Step
	}
}

// refusedForGood tells whether no retry will help.
func refusedForGood(err error) bool {
	return errors.Is(err, registry.ErrOvertaken) || errors.Is(err, registry.ErrSuperseded) ||
		errors.Is(err, registry.ErrForbidden)
}

func (u *uploader) refuse(ctx context.Context, one uploaded, why error) {
	if u.committed(ctx, one) {
		return // by an attempt whose answer was lost
	}
	u.m.cfg.Log.Warn("refused checkpoint of an older generation removed", "step", one.step.Step, "generation", one.gen,
		"at", one.step.URI, "err", why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	if err := u.remote.Remove(ctx, one.kept); err != nil {
		u.m.cfg.Log.Warn("removing a refused checkpoint failed", "at", one.step.URI, "err", err)
	}
}

// committed tells whether the registry names a checkpoint, or cannot be asked.
func (u *uploader) committed(ctx context.Context, one uploaded) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	stored, err := u.m.cfg.Registry().Stored(ctx)
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

// prune has the registry name only the newest checkpoint and what the gang could still resume from. It removes from the
// store what is beyond the newest muster.checkpoint.keep and not one of those. done: nothing more can be removed until
// the next commit.
func (u *uploader) prune(ctx context.Context) (done bool, err error) {
	member, in := u.m.cfg.Registry(), u.m.cfg.Loop.State().Instance
	found, err := member.CommonStep(ctx)
	if err != nil {
		return false, err
	}
	u.warnApart(found, in)
	own, err := member.Own(ctx)
	if err != nil || len(own.Steps) == 0 {
		return true, err
	}
	facts, d := u.m.cfg.Facts(), member.Directive()
	if facts.Alone(d.Gen, found, own, in) {
		stored, err := member.Stored(ctx)
		if err != nil {
			return false, err
		}
		found = facts.CommonStep(d, stored)
	}
	least := facts.LeastStep(d.Gen, found, own, in)
	if err := member.Trim(ctx, least); err != nil {
		return false, err
	}
	if own, err = member.Own(ctx); err != nil {
		return false, err
	}
	// The copies in this instance's own place are named by its own key alone, unless it stores for all from a folder
	// that they share: then it is the only one, and reads what the others name.
	named := map[registry.Instance]registry.Checkpoint{in: own}
	newest := own.Steps[len(own.Steps)-1]
	kept, ok := copyAt(newest.URI)
	done = least >= newest.Step
	if u.m.plan.Checkpoint.Keep <= 0 || !ok {
		return done, nil
	}
	if newest.Shared {
		if named, err = member.Stored(ctx); err != nil {
			return false, err
		}
	}
	forget := func(c StoredCopy) error { return member.Forget(ctx, u.url(c)) } // before the copy is removed
	return done, u.remote.Keep(ctx, kept.Instance, u.m.plan.Checkpoint.Keep, least, namedBy(named), forget)
}

// namedBy tells of a stored checkpoint whether the registry names it.
func namedBy(stored map[registry.Instance]registry.Checkpoint) func(StoredCopy) bool {
	named := map[StoredCopy]bool{}
	for _, c := range stored {
		for _, s := range c.Steps {
			if kept, ok := copyAt(s.URI); ok {
				named[kept] = true
			}
		}
	}
	return func(c StoredCopy) bool { return named[c] }
}

// warnApart warns early of ranks that have no checkpoint in common, so that the next failure would throw everything
// away. One of the ranks does so.
func (u *uploader) warnApart(found registry.CommonStep, in registry.Instance) {
	if found.Apart == "" || found.First != in.String() {
		u.m.cfg.Notices.Mended(warnApart, "the ranks have a stored checkpoint in common, or another rank warns of it")
		return
	}
	u.m.cfg.Notices.Warn(warnApart, "no stored checkpoint is common to all ranks; a restart would start from the "+
		"beginning: "+found.Apart+"; set muster.checkpoint.ranks=some where not every rank saves")
}
