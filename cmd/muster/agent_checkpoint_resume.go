package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// keepCheckpoints opens the store, clears what an earlier agent of this index left half there, tells the registry what the
// store has where it knows nothing, and copies from now on.
func (r stageRoom) keepCheckpoints(ctx context.Context, p plan.Plan, in registry.Instance) error {
	k, err := r.openKeeper(ctx, p)
	if k == nil || err != nil {
		return err
	}
	r.atEnd(func() {
		r.saves.mu.Lock()
		defer r.saves.mu.Unlock()
		_ = r.saves.writer.Release() // the next of this host takes it
	})
	if err := k.vault.Sweep(ctx, in.String()); err != nil {
		return fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	if err := k.store.MkdirAll(ctx, k.vault.Top+"/"+in.String()); err != nil { // what may not be written is told now
		return fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	if err := k.adopt(ctx, in); err != nil {
		return fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	r.saves.mu.Lock()
	r.saves.keeper = k
	r.saves.mu.Unlock()
	return nil
}

// adopt commits what this instance has in the store when the registry knows of none: it began anew, and the manifests decide.
func (k *keeper) adopt(ctx context.Context, in registry.Instance) error {
	stored, err := k.a.seatNow().Stored(ctx)
	if err != nil || len(stored[in].Steps) > 0 {
		return err
	}
	mine, err := k.manifests(ctx, in.String())
	if err != nil || len(mine) == 0 {
		return err
	}
	standing := mine
	if mine[len(mine)-1].Shared {
		if standing, err = k.sharedManifests(ctx); err != nil {
			return err
		}
	}
	var steps []registry.CheckpointStep
	for _, m := range checkpoint.Standing(standing) {
		if m.Instance != in.String() {
			continue
		}
		kept := m.Kept()
		steps = append(steps, registry.CheckpointStep{Step: m.Step, URI: k.url(kept), SHA256: k.sums[kept], Shared: m.Shared})
	}
	if len(steps) == 0 {
		return nil
	}
	k.a.log.Info("the registry knows of no checkpoints, the store does", "newest", steps[len(steps)-1].Step, "number", len(steps))
	return k.a.seatNow().Store(ctx, k.a.seatNow().Record().Gen, steps...)
}

// manifests are those of an instance's checkpoints that are as they were stored, oldest first.
func (k *keeper) manifests(ctx context.Context, instance string) ([]checkpoint.Manifest, error) {
	kept, err := k.vault.List(ctx, instance)
	if err != nil {
		return nil, err
	}
	var all []checkpoint.Manifest
	for _, one := range kept {
		m, sum, err := k.vault.Read(ctx, one)
		if errors.Is(err, checkpoint.ErrTorn) {
			k.a.log.Warn("checkpoint in the store is passed over", "at", k.url(one), "why", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		k.sums[one] = sum
		all = append(all, m)
	}
	return all, nil
}

func (k *keeper) sharedManifests(ctx context.Context) ([]checkpoint.Manifest, error) {
	instances, err := k.vault.Instances(ctx)
	if err != nil {
		return nil, err
	}
	var all []checkpoint.Manifest
	for _, in := range instances {
		some, err := k.manifests(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(some, func(m checkpoint.Manifest) bool { return !m.Shared })...)
	}
	return all, nil
}

// goOn has the folder of the checkpoints hold what this generation goes on from: brought from the store where it is not here, and
// what is newer than a gang's own step set aside. The start that follows fails with what keeps it from that.
func (r gangRoom) goOn(ctx context.Context, s shim.State) {
	p := r.currentPlan()
	if p.Who.Role == "service" || onStore(p.Checkpoint.Dir) {
		return
	}
	var resume *int64
	if s.Policy.Scope != "instance" {
		resume = s.Directive.Resume
	}
	err := r.ready(ctx, p, s, resume)
	if err != nil && ctx.Err() == nil {
		r.log.Error("the checkpoint to go on from is not here", "err", err)
	}
	r.saves.mu.Lock()
	defer r.saves.mu.Unlock()
	r.saves.failed = err
}

// ready does goOn's work, one agent of a host at a time where they share the folder.
func (r gangRoom) ready(ctx context.Context, p plan.Plan, s shim.State, resume *int64) error {
	k := r.keeperNow()
	if k == nil && resume == nil {
		return nil
	}
	found, l, err := r.look(ctx, p, true)
	if err != nil {
		return dataError{fmt.Errorf("look for a checkpoint: %w", err)}
	}
	if l.shared {
		lock, err := r.lockFolder(ctx, l.dir)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Release() }()
		if found, l, err = r.look(ctx, p, false); err != nil { // another has brought it meanwhile
			return dataError{fmt.Errorf("look for a checkpoint: %w", err)}
		}
	}
	if k != nil {
		if err := k.bring(ctx, s.Instance, found, resume); err != nil {
			return dataError{fmt.Errorf("bring the checkpoint back: %w", err)}
		}
	}
	if resume == nil {
		return nil
	}
	if err := r.seat.GiveUp(ctx, *resume); err != nil {
		r.ok("give newer checkpoints up", err)
	}
	return r.setAside(ctx, p, *resume, s)
}

// lockPoll is how often a folder is asked for that another agent of this host lays a checkpoint out in.
const lockPoll = 50 * time.Millisecond

func (a *agent) lockFolder(ctx context.Context, dir string) (*hostlock.Lock, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		lock, err := hostlock.Take("resume/" + a.id.appID + "/" + trueName(dir))
		if !errors.Is(err, hostlock.ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// bring lays out the checkpoint of a step that all have, or the newest where nothing is said. What is here already is not
// brought; one that is torn in the store is passed over with a warning, and the one before is taken.
func (k *keeper) bring(ctx context.Context, in registry.Instance, found checkpoint.Found, resume *int64) error {
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
			k.a.log.Warn("what is here of this step is another branch's", "step", here.Step, "want", one.URI)
		}
		err := k.bringOne(ctx, one)
		if !errors.Is(err, checkpoint.ErrTorn) {
			return err
		}
		k.a.log.Warn("checkpoint in the store is passed over", "at", one.URI, "why", err)
		if err := k.a.seatNow().Forget(ctx, one.URI); err != nil {
			gangRoom{k.a}.ok("forget a torn checkpoint", err)
		}
	}
	if resume == nil || have || len(candidates) == 0 {
		return nil
	}
	return fmt.Errorf("step %d, which every rank has stored, is not whole in %s", *resume, k.plan.Checkpoint.Sync)
}

// candidates are what the registry knows of, the newest first: of the instance's own folder, else of that of all. Of a step, only
// those; where an earlier one has to do, the older ones follow.
func (k *keeper) candidates(ctx context.Context, in registry.Instance, resume *int64) ([]registry.CheckpointStep, error) {
	stored, err := k.a.seatNow().Stored(ctx)
	if err != nil {
		return nil, err
	}
	var own, shared []registry.CheckpointStep
	for who, c := range stored {
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

func (k *keeper) bringOne(ctx context.Context, one registry.CheckpointStep) error {
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
	if err := k.vault.Bring(ctx, m, root, k.a.inc, k.a.checkpointOwner(), k.receive); err != nil {
		return err
	}
	k.a.log.Info("checkpoint is back from the store", "step", m.Step, "from", one.URI, "generation", m.Generation, "files", len(m.Files), "bytes", m.Bytes(), "took", time.Since(begun).Round(time.Millisecond))
	found, _, err := k.a.look(ctx, k.plan, false)
	if err != nil {
		return err
	}
	c, ok := found.At(m.Step)
	if !ok {
		return fmt.Errorf("step %d came from %s, and is not whole by the rules here", m.Step, one.URI)
	}
	k.known(c)
	return checkpoint.WriteState(root, k.plan.Framework, found, c, k.a.checkpointOwner())
}

// same tells whether what is here of a step is what was committed of it: a container that comes back to a host may find a step
// there that its gang has given up. A store that cannot be asked leaves it as it is.
func (k *keeper) same(ctx context.Context, one registry.CheckpointStep) bool {
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
func (k *keeper) known(c checkpoint.Checkpoint) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done, k.doneAt = c.Stamp(), c.Step
}

func (k *keeper) receive(ctx context.Context, to *os.Root, files []checkpoint.Wanted) error {
	copies := make([]stage.Copy, len(files))
	for i, f := range files {
		copies[i] = stage.Copy{From: stage.File{Store: k.store, Path: f.From, Size: f.Size}, To: f.To}
	}
	return k.a.transfer().Bring(ctx, to, copies)
}

// resumedName is the file in a checkpoint folder that says which generation has set newer ones aside: what lies there since is
// its own.
const resumedName = ".muster-resumed"

// setAside renames what is newer than the gang's step, once for each generation and folder.
func (a *agent) setAside(ctx context.Context, p plan.Plan, step int64, s shim.State) error {
	found, l, err := a.look(ctx, p, false)
	if err != nil {
		return dataError{err}
	}
	if _, ok := found.Until(step); !ok {
		return nil // nothing that old is here: what there is is all that this rank has
	}
	root, err := openPlace(l.dir, l.place)
	if err != nil {
		return dataError{err}
	}
	defer root.Close()
	done := a.id.appID + "@" + a.id.run + " " + a.seatNow().Founded().UTC().Format(time.RFC3339Nano) + " " + strconv.Itoa(s.Gen) + "\n"
	if text, err := checkpoint.ReadSmall(root, resumedName); err == nil && string(text) == done {
		return nil
	}
	moved, err := checkpoint.SetAside(root, found, step, "g"+strconv.Itoa(s.Gen))
	if len(moved) > 0 {
		a.log.Warn("checkpoints that not every rank has are set aside", "resume", step, "dir", root.Name(), "names", moved)
		if err == nil {
			err = a.tellFramework(ctx, p, root, step)
		}
	}
	if err == nil {
		err = checkpoint.WriteNew(root, resumedName, done)
	}
	if err != nil {
		return dataError{err}
	}
	return nil
}

// tellFramework has TensorFlow's own file name the newest checkpoint that is left, up to a step.
func (a *agent) tellFramework(ctx context.Context, p plan.Plan, root *os.Root, step int64) error {
	found, _, err := a.look(ctx, p, false)
	if err != nil {
		return err
	}
	c, ok := found.Until(step)
	if !ok {
		return nil
	}
	return checkpoint.WriteState(root, p.Framework, found, c, a.checkpointOwner())
}

// notReady is what keeps a start from going on from where it should.
func (a *agent) notReady() error {
	a.saves.mu.Lock()
	defer a.saves.mu.Unlock()
	return a.saves.failed
}

func (a *agent) seatNow() *consul.Seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seat
}
