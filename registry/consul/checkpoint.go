package consul

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// checkpointKey is the last written value of the own key checkpoint/<c>/<i>.
type checkpointKey struct {
	known bool
	value registry.Checkpoint
	index uint64
}

// Checkpoint is T13: it records where a complete checkpoint is. The commit checks the live key and the record as they
// were when Checkpoint was called: if the member acknowledges a newer generation meanwhile, the commit is refused with
// registry.ErrOvertaken. The key names the newest five.
func (s *Membership) Checkpoint(ctx context.Context, one registry.CheckpointStep) error {
	return s.changeSteps(ctx, s.held().record.Gen, func(steps []registry.CheckpointStep) []registry.CheckpointStep {
		return conductor.Named(withStep(steps, one), math.MaxInt64)
	})
}

// Store is Checkpoint for several checkpoints, which were saved in that generation. Committed ones stay until Trim.
func (s *Membership) Store(ctx context.Context, gen int, stored ...registry.CheckpointStep) error {
	return s.changeSteps(ctx, gen, func(steps []registry.CheckpointStep) []registry.CheckpointStep {
		for _, one := range stored {
			steps = withStep(steps, one)
		}
		return steps
	})
}

// Trim reduces the key to what is needed: the newest checkpoints, and all from step least on, from which the gang could
// still resume.
func (s *Membership) Trim(ctx context.Context, least int64) error {
	return s.changeSteps(ctx, s.held().record.Gen, func(steps []registry.CheckpointStep) []registry.CheckpointStep {
		return conductor.Named(steps, least)
	})
}

// GiveUp removes the committed checkpoints of later steps: the gang resumes from an older step, and theirs belong to a
// history that no other member has.
func (s *Membership) GiveUp(ctx context.Context, after int64) error {
	return s.changeSteps(ctx, s.held().record.Gen, func(steps []registry.CheckpointStep) []registry.CheckpointStep {
		return slices.DeleteFunc(steps, func(c registry.CheckpointStep) bool { return c.Step > after })
	})
}

// Forget removes what was committed at uri: it is gone or damaged.
func (s *Membership) Forget(ctx context.Context, uri string) error {
	return s.changeSteps(ctx, s.held().record.Gen, func(steps []registry.CheckpointStep) []registry.CheckpointStep {
		return slices.DeleteFunc(steps, func(c registry.CheckpointStep) bool { return c.URI == uri })
	})
}

// Condemn marks a copy, whoever committed it, as damaged: no member resumes from it any more.
func (s *Membership) Condemn(ctx context.Context, bad registry.BadCopy) error {
	return s.changeKey(ctx, s.held().record.Gen, func(c registry.Checkpoint) registry.Checkpoint {
		c.Steps = slices.DeleteFunc(slices.Clone(c.Steps), func(one registry.CheckpointStep) bool {
			return one.URI == bad.URI && one.SHA256 == bad.SHA256
		})
		if !slices.ContainsFunc(c.Bad, func(b registry.BadCopy) bool { return b.Copy() == bad.Copy() }) {
			c.Bad = append(slices.Clone(c.Bad), bad)
		}
		c.Bad = c.Bad[max(0, len(c.Bad)-registry.MostBad):]
		return c
	})
}

// Stored are the checkpoints that all instances have committed. It costs one reading of all their keys.
func (s *Membership) Stored(ctx context.Context) (map[registry.Instance]registry.Checkpoint, error) {
	return storedIn(ctx, s.gang.bulk, s.gang.keys)
}

// Own are the checkpoints that this instance has committed. Usually it reads nothing.
func (s *Membership) Own(ctx context.Context) (registry.Checkpoint, error) {
	_, own, err := s.checkpointNow(ctx)
	return own.value, err
}

// CommonStep is what the conductor has last found in the checkpoints of all instances; zero: nothing yet.
func (s *Membership) CommonStep(ctx context.Context) (registry.CommonStep, error) {
	k := s.gang.keys
	pair, err := s.gang.calls.get(ctx, k.common(), byDefault)
	if err != nil || pair == nil {
		return registry.CommonStep{}, err
	}
	return decode[registry.CommonStep](pair.Key, pair.Value)
}

// Founded is when the app was founded in this registry. A registry that has lost its data has another time.
func (s *Membership) Founded() time.Time { return s.app.Created }

// changeSteps changes the steps in the own key, as a member of that generation.
func (s *Membership) changeSteps(
	ctx context.Context, gen int, change func([]registry.CheckpointStep) []registry.CheckpointStep,
) error {
	return s.changeKey(ctx, gen, func(c registry.Checkpoint) registry.Checkpoint {
		c.Steps = change(slices.Clone(c.Steps))
		return c
	})
}

func (s *Membership) changeKey(
	ctx context.Context, gen int, change func(registry.Checkpoint) registry.Checkpoint,
) error {
	var b backoff
	for {
		err := s.commitCheckpoint(ctx, gen, change)
		if err == nil || !s.passes(err) {
			return err
		}
		if err := pause(ctx, b.next()); err != nil {
			return err
		}
		if err := s.reread(ctx); err != nil && !s.passes(err) {
			return err
		}
	}
}

func (s *Membership) commitCheckpoint(
	ctx context.Context, gen int, change func(registry.Checkpoint) registry.Checkpoint,
) error {
	if err := s.over(); err != nil {
		return err
	}
	h, old, err := s.checkpointNow(ctx)
	if err != nil {
		return err
	}
	if h.record.Gen != gen {
		return fmt.Errorf("checkpoints in generation %d: %w", gen, registry.ErrOvertaken)
	}
	next := change(old.value)
	if slices.Equal(next.Steps, old.value.Steps) && slices.Equal(next.Bad, old.value.Bad) {
		return nil // nothing to change, or an earlier try committed it and its answer was lost
	}
	next.Gen, next.Inc, next.Own = gen, h.record.Inc, old.value.Own || hasOwn(next.Steps)
	k := s.gang.keys
	res, err := s.gang.calls.commit(ctx, k.commitSteps(s.instance, h.session, h.index, old.index, encode(next))...)
	if err != nil {
		s.remember(checkpointKey{})
		return err
	}
	s.remember(checkpointKey{known: true, value: next, index: res.index(k.checkpoint(s.instance))})
	return nil
}

func withStep(steps []registry.CheckpointStep, c registry.CheckpointStep) []registry.CheckpointStep {
	all := slices.DeleteFunc(slices.Clone(steps), func(o registry.CheckpointStep) bool { return o.Step == c.Step })
	all = append(all, c) // in the order of their commits: after a return to an older step the numbers fall
	return all[max(0, len(all)-mostSteps):]
}

// mostSteps limits a key that nobody trims: Consul's values have at most 512 KiB.
const mostSteps = 4 * registry.MostSteps

func hasOwn(steps []registry.CheckpointStep) bool {
	return slices.ContainsFunc(steps, func(s registry.CheckpointStep) bool { return !s.Shared })
}

// checkpointNow is the own key; it is read once and then remembered.
func (s *Membership) checkpointNow(ctx context.Context) (held, checkpointKey, error) {
	s.mu.Lock()
	known := s.checkpoint
	s.mu.Unlock()
	if known.known {
		return s.held(), known, nil
	}
	h := s.held()
	pair, err := s.gang.calls.get(ctx, s.gang.keys.checkpoint(s.instance), consistent)
	if err != nil {
		return h, checkpointKey{}, err
	}
	known.known = true
	if pair != nil {
		known.index = pair.ModifyIndex
		if known.value, err = readCheckpoint(pair); err != nil {
			return h, checkpointKey{}, err
		}
	}
	s.remember(known)
	return h, known, nil
}

func (s *Membership) remember(c checkpointKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoint = c
}

// reread reads the own key again after a refusal.
func (s *Membership) reread(ctx context.Context) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.giveTurn()
	_, err := s.reconcile(ctx, nil)
	return err
}
