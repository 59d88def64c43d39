package consul

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// keptSteps is how many checkpoints an instance's key names.
const keptSteps = 5

// checkpointKey is the own key checkpoint/<c>/<i> as last written.
type checkpointKey struct {
	known bool
	value registry.Checkpoint
	index uint64
}

// Checkpoint is T13: a whole checkpoint of step is stored at uri, with that sha256. It is committed under
// the live key and the record as it was when Checkpoint was called: a commit that is still on its way when
// the member acknowledges a newer generation is refused, and answered with registry.ErrOvertaken.
func (s *Seat) Checkpoint(ctx context.Context, step int64, uri, sha string) error {
	gen := s.held().record.Gen
	var b backoff
	for {
		err := s.commitCheckpoint(ctx, gen, registry.CheckpointStep{Step: step, URI: uri, SHA256: sha})
		if err == nil || !s.again(err) {
			return err
		}
		if err := pause(ctx, b.next()); err != nil {
			return err
		}
		if err := s.reread(ctx); err != nil && !s.again(err) {
			return err
		}
	}
}

func (s *Seat) commitCheckpoint(ctx context.Context, gen int, c registry.CheckpointStep) error {
	if err := s.over(); err != nil {
		return err
	}
	h, old, err := s.checkpointNow(ctx)
	if err != nil {
		return err
	}
	if h.record.Gen != gen {
		return fmt.Errorf("checkpoint of step %d in generation %d: %w", c.Step, gen, registry.ErrOvertaken)
	}
	if slices.Contains(old.value.Steps, c) {
		return nil // committed by a try whose answer was lost
	}
	next := registry.Checkpoint{Version: 1, Gen: gen, Inc: h.record.Inc, Steps: withStep(old.value.Steps, c)}
	k := s.g.keys
	res, err := s.g.calls.commit(ctx,
		opSession(k.live(s.instance), h.session),
		opIndex(k.member(s.instance), h.index),
		opCAS(k.checkpoint(s.instance), old.index, encode(next)))
	if err != nil {
		s.remember(checkpointKey{})
		return err
	}
	s.remember(checkpointKey{known: true, value: next, index: res.index(k.checkpoint(s.instance))})
	return nil
}

func withStep(steps []registry.CheckpointStep, c registry.CheckpointStep) []registry.CheckpointStep {
	all := slices.DeleteFunc(slices.Clone(steps), func(o registry.CheckpointStep) bool { return o.Step == c.Step })
	all = append(all, c)
	slices.SortStableFunc(all, func(a, b registry.CheckpointStep) int { return int(min(max(a.Step-b.Step, -1), 1)) })
	return all[max(0, len(all)-keptSteps):]
}

// checkpointNow is the own key; it is read once and remembered.
func (s *Seat) checkpointNow(ctx context.Context) (held, checkpointKey, error) {
	s.mu.Lock()
	known := s.checkpoint
	s.mu.Unlock()
	if known.known {
		return s.held(), known, nil
	}
	h := s.held()
	pair, err := s.g.calls.get(ctx, s.g.keys.checkpoint(s.instance), consistent)
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

func readCheckpoint(pair *api.KVPair) (registry.Checkpoint, error) {
	return decode[registry.Checkpoint](pair.Key, pair.Value)
}

func (s *Seat) remember(c checkpointKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoint = c
}

// reread settles after a refusal.
func (s *Seat) reread(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	_, err := s.settle(ctx, nil)
	return err
}
