package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/stage"
)

// bring lays out the checkpoint of a step that all have, or the newest where nothing is said. What is here already is not
// brought; one that is torn in the store is passed over with a warning, and the one before is taken.
func (k *uploader) bring(ctx context.Context, in registry.Instance, found format.Found, resume *int64) error {
	candidates, err := k.candidates(ctx, in, resume)
	if err != nil {
		return err
	}
	here, have := found.Newest()
	if resume != nil {
		here, have = found.At(*resume)
	}
	for _, one := range candidates {
		if have && one.Step <= here.Step {
			if one.Step < here.Step || k.has(here) || k.same(ctx, one) {
				if one.Step == here.Step {
					k.known(here) // it is in the store already
				}
				return nil
			}
			k.m.cfg.Log.Warn("what is here of this step is another branch's", "step", here.Step, "want", one.URI)
		}
		err := k.bringOne(ctx, one)
		if !errors.Is(err, checkpoint.ErrTorn) && !k.removed(ctx, one, err) {
			return err
		}
		k.m.cfg.Log.Warn("checkpoint in the store is passed over", "at", one.URI, "why", err)
		if err := k.m.cfg.Registry().Condemn(ctx, registry.BadCopy{URI: one.URI, SHA256: one.SHA256}); err != nil {
			k.m.logWrite("say that a checkpoint is torn", err)
		}
	}
	if resume == nil || have || len(candidates) == 0 {
		return nil
	}
	return fmt.Errorf("step %d, which every rank has stored, is not whole in %s", *resume, k.m.plan.Checkpoint.Sync)
}

// removed tells of a copy that is absent whether it alone is gone: where this host sees nothing else of who stored it, it may be
// another store that this host sees, and then the copy is good for all others.
func (k *uploader) removed(ctx context.Context, one registry.CheckpointStep, err error) bool {
	if !errors.Is(err, checkpoint.ErrAbsent) {
		return false
	}
	kept, _ := checkpoint.Named(one.URI)
	others, err := k.vault.List(ctx, kept.Instance)
	return err == nil && len(others) > 0
}

// candidates are what the registry knows of, the newest first: of the instance's own folder, else of that of all. Of a step, only
// those; where an earlier one has to do, the older ones follow.
func (k *uploader) candidates(ctx context.Context, in registry.Instance, resume *int64) ([]registry.CheckpointStep, error) {
	stored, err := k.m.cfg.Registry().Stored(ctx)
	if err != nil {
		return nil, err
	}
	var own, shared []registry.CheckpointStep
	for who, c := range registry.Sound(stored) {
		for _, s := range c.Steps {
			if _, kept := checkpoint.Named(s.URI); !kept || resume != nil && s.Step != *resume {
				continue
			}
			if s.Shared {
				shared = append(shared, s)
			} else if who == in {
				own = append(own, s)
			}
		}
	}
	if len(own) == 0 {
		own = shared
	}
	slices.SortFunc(own, func(a, b registry.CheckpointStep) int { return int(min(max(b.Step-a.Step, -1), 1)) })
	return own, nil
}

func (k *uploader) bringOne(ctx context.Context, one registry.CheckpointStep) error {
	begun := time.Now()
	kept, _ := checkpoint.Named(one.URI)
	m, sum, err := k.vault.Read(ctx, kept)
	if err == nil && one.SHA256 != "" && sum != one.SHA256 {
		err = fmt.Errorf("its manifest is not the one that was committed: %w", checkpoint.ErrTorn)
	}
	if err != nil {
		return err
	}
	root, err := k.local(m.Place)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := k.vault.Bring(ctx, m, root, k.m.cfg.Inc, k.m.owner(), k.receive); err != nil {
		return err
	}
	k.m.cfg.Log.Info("checkpoint is back from the store", "step", m.Step, "from", one.URI, "generation", m.Generation, "files", len(m.Files), "bytes", m.Bytes(), "took", time.Since(begun).Round(time.Millisecond))
	found, _, err := k.m.look(ctx, false)
	if err != nil {
		return err
	}
	c, ok := found.At(m.Step)
	if !ok {
		return fmt.Errorf("step %d came from %s, and is not whole by the rules here", m.Step, one.URI)
	}
	k.known(c)
	return checkpoint.WriteState(root, k.m.plan.Framework, found, c, k.m.owner())
}

// same tells whether what is here of a step is what was committed of it: a container that comes back to a host may find a step
// there that its gang has given up. A store that cannot be asked leaves it as it is.
func (k *uploader) same(ctx context.Context, one registry.CheckpointStep) bool {
	kept, _ := checkpoint.Named(one.URI)
	m, _, err := k.vault.Read(ctx, kept)
	if err != nil {
		return true
	}
	root, err := k.local(m.Place)
	if err != nil {
		return true
	}
	defer root.Close()
	return checkpoint.Same(ctx, root, m)
}

// known has a checkpoint not copied: the store has it.
func (k *uploader) known(c format.Checkpoint) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done, k.doneAt = c.Stamp(), c.Step
}

func (k *uploader) receive(ctx context.Context, to *os.Root, files []checkpoint.Wanted) error {
	copies := make([]stage.Copy, len(files))
	for i, f := range files {
		copies[i] = stage.Copy{From: stage.File{Store: k.store, Path: f.From, Size: f.Size}, To: f.To}
	}
	return k.m.cfg.Transfer().Bring(ctx, to, copies)
}
