package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
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

// adopt commits what this instance has in the store when the registry has never heard of any: it began anew, and the manifests
// decide.
func (k *keeper) adopt(ctx context.Context, in registry.Instance) error {
	stored, err := k.a.seatNow().Stored(ctx)
	if _, known := stored[in]; err != nil || known {
		return err
	}
	mine, err := k.manifests(ctx, in.String())
	if err != nil || len(mine) == 0 {
		return err
	}
	standing, err := k.together(ctx, in, mine)
	if err != nil {
		return err
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
		if errors.Is(err, checkpoint.ErrTorn) || errors.Is(err, checkpoint.ErrAbsent) {
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

// together are the manifests of all who go on from the same step as this instance: what one of them has stored of a later
// generation shows which branch was given up by all.
func (k *keeper) together(ctx context.Context, in registry.Instance, mine []checkpoint.Manifest) ([]checkpoint.Manifest, error) {
	resumes := map[string]bool{}
	for _, c := range k.facts().Components {
		resumes[c.Name] = c.Resumes()
	}
	instances, err := k.vault.Instances(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(mine)
	for _, name := range instances {
		component := name[:strings.LastIndexByte(name, '-')]
		if name == in.String() || !mine[len(mine)-1].Shared && !(resumes[in.Component] && resumes[component]) {
			continue
		}
		theirs, err := k.manifests(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(theirs, func(m checkpoint.Manifest) bool { return !m.Shared && !(resumes[in.Component] && resumes[component]) })...)
	}
	return all, nil
}

// herePatience is how long a gang's formation waits for a store's word on the checkpoints that a process keeps there itself.
const herePatience = 30 * time.Second

// here is what the folder of the checkpoints has while nothing runs there, for whom the gang's step is chosen; nil: this instance
// goes on by itself.
func (r gangRoom) here(ctx context.Context, s shim.State) *registry.Here {
	p := r.currentPlan()
	if p.Who.Role == string(appdef.RoleService) || s.Policy.Scope == registry.ScopeInstance || p.Checkpoint.Ranks == registry.RanksEach {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, herePatience)
	defer cancel()
	found, l, err := r.look(ctx, p, false)
	if err != nil {
		r.log.Warn("look for a checkpoint", "dir", p.Checkpoint.Dir, "err", err)
		return &registry.Here{Shared: l.shared, Steps: []int64{}, Unknown: true}
	}
	out := &registry.Here{Gen: r.lastResumed(l), Shared: l.shared, Steps: []int64{}}
	for _, c := range found.Whole[max(0, len(found.Whole)-registry.MostSteps):] {
		out.Steps = append(out.Steps, c.Step)
	}
	return out
}

// goOn has the folder of the checkpoints hold what this generation goes on from: brought from the store where it is not here, and
// what is newer than a gang's own step set aside. The start that follows fails with what keeps it from that.
func (r gangRoom) goOn(ctx context.Context, s shim.State) {
	p := r.currentPlan()
	if p.Who.Role == string(appdef.RoleService) {
		return
	}
	r.tellAnew(p, s)
	var err error
	if !onStore(p.Checkpoint.Dir) {
		err = r.ready(ctx, p, s)
	} else if r.follows(p, s) {
		err = r.wasDark(ctx, p, s.Directive.Resume)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Error("the checkpoint to go on from is not here", "err", err)
	}
	if err == nil && !onStore(p.Checkpoint.Dir) {
		r.tellWithout(ctx, p, s)
	}
	r.saves.mu.Lock()
	defer r.saves.mu.Unlock()
	if r.saves.failed = err; err == nil {
		r.saves.ran = s.Gen
	}
}

// tellWithout warns of an instance that starts from nothing while its gang goes on from a step: right where one saves for all and
// its peers get the state from it, and a mixture where each saves its own and the first alone has done so yet.
func (r gangRoom) tellWithout(ctx context.Context, p plan.Plan, s shim.State) {
	step := s.Directive.Resume
	if !r.follows(p, s) || step == nil || *step == registry.NoStep || p.Who.Role == string(appdef.RolePS) {
		r.mended(warnWithout, "it goes on with its gang")
		return
	}
	found, _, err := r.look(ctx, p, false)
	if err != nil {
		return
	}
	if _, ok := found.At(*step); ok {
		r.mended(warnWithout, "it goes on with its gang")
		return
	}
	r.log.Warn("the gang goes on from a step that this instance does not have; it starts without", "step", *step)
	r.warn(warnWithout, fmt.Sprintf("%s starts without a checkpoint while its gang goes on from step %d; "+
		"muster.checkpoint.ranks=all where each rank saves its own part, muster.checkpoint.sync where others shall have what one saves", s.Instance, *step))
}

// tellAnew warns of a gang that begins anew; one of it does, for all.
func (r gangRoom) tellAnew(p plan.Plan, s shim.State) {
	if why := s.Directive.Anew; why != "" && r.follows(p, s) {
		r.log.Warn("the gang begins anew, for ranks have checkpoints and none is everybody's", "steps", why)
		if p.Who.Rank == 0 {
			r.warn(warnAnew, "generation "+strconv.Itoa(s.Gen)+" begins anew, for no checkpoint is everybody's: "+why+
				"; what there is, is kept in .muster-set-aside-g"+strconv.Itoa(s.Gen)+" and in the store's set-aside-g"+strconv.Itoa(s.Gen)+
				"; muster.checkpoint.ranks=some where not every rank saves")
		}
		return
	}
	r.mended(warnAnew, "the gang goes on from a checkpoint again")
}

// follows tells that an instance goes on from its gang's step.
func (a *agent) follows(p plan.Plan, s shim.State) bool {
	return s.Policy.Scope != registry.ScopeInstance && p.Checkpoint.Ranks != registry.RanksEach
}

// ready does goOn's work, one agent of a host at a time where they share the folder.
func (r gangRoom) ready(ctx context.Context, p plan.Plan, s shim.State) error {
	k, follows := r.keeperNow(), r.follows(p, s)
	if k == nil && !follows {
		return nil
	}
	var resume *int64
	if follows {
		resume = s.Directive.Resume
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
	anew := resume != nil && *resume == registry.NoStep
	switch {
	case k == nil:
	case anew:
		if err := k.setAside(ctx, s); err != nil {
			return dataError{fmt.Errorf("set aside what is stored: %w", err)}
		}
	default:
		if err := k.bring(ctx, s.Instance, found, resume); err != nil {
			return dataError{fmt.Errorf("bring the checkpoint back: %w", err)}
		}
	}
	if !follows {
		return nil
	}
	if err := r.wasDark(ctx, p, resume); err != nil {
		return err
	}
	if resume != nil {
		if err := r.seat.GiveUp(ctx, *resume); err != nil && !errors.Is(err, registry.ErrOvertaken) {
			return dataError{fmt.Errorf("give newer checkpoints up: %w", err)} // what is saved from now on would meet them
		}
	}
	return r.resumeFolder(ctx, p, resume, s)
}

// wasDark fails where this instance could not tell what it has when its gang chose a step, and the choice does not suit it: the
// gang forms once more, and then it is known.
func (r gangRoom) wasDark(ctx context.Context, p plan.Plan, resume *int64) error {
	h := r.seat.Record().Here
	if h == nil || !h.Unknown || resume != nil && *resume == registry.NoStep {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, herePatience)
	defer cancel()
	found, _, err := r.look(ctx, p, false)
	if err != nil {
		return dataError{fmt.Errorf("look for a checkpoint: %w", err)}
	}
	suits := len(found.Whole) == 0
	if resume != nil {
		_, suits = found.At(*resume)
	}
	if suits {
		return nil
	}
	return dataError{fmt.Errorf("what %s has could not be looked at when the gang chose a step, and it is another", p.Checkpoint.Dir)}
}

// setAside keeps what this instance has stored, and has nobody go on from it.
func (k *keeper) setAside(ctx context.Context, s shim.State) error {
	moved, err := k.vault.SetAside(ctx, s.Instance.String(), "g"+strconv.Itoa(s.Gen))
	if len(moved) > 0 {
		k.a.log.Warn("stored checkpoints are set aside", "number", len(moved), "newest", moved[len(moved)-1].Step)
	}
	return err
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
		if !errors.Is(err, checkpoint.ErrTorn) && !k.removed(ctx, one, err) {
			return err
		}
		k.a.log.Warn("checkpoint in the store is passed over", "at", one.URI, "why", err)
		if err := k.a.seatNow().Condemn(ctx, registry.BadCopy{URI: one.URI, SHA256: one.SHA256}); err != nil {
			gangRoom{k.a}.ok("say that a checkpoint is torn", err)
		}
	}
	if resume == nil || have || len(candidates) == 0 {
		return nil
	}
	return fmt.Errorf("step %d, which every rank has stored, is not whole in %s", *resume, k.plan.Checkpoint.Sync)
}

// removed tells of a copy that is absent whether it alone is gone: where this host sees nothing else of who stored it, it may be
// another store that this host sees, and then the copy is good for all others.
func (k *keeper) removed(ctx context.Context, one registry.CheckpointStep, err error) bool {
	if !errors.Is(err, checkpoint.ErrAbsent) {
		return false
	}
	kept, _ := checkpoint.Named(one.URI)
	others, err := k.vault.List(ctx, kept.Instance)
	return err == nil && len(others) > 0
}

// candidates are what the registry knows of, the newest first: of the instance's own folder, else of that of all. Of a step, only
// those; where an earlier one has to do, the older ones follow.
func (k *keeper) candidates(ctx context.Context, in registry.Instance, resume *int64) ([]registry.CheckpointStep, error) {
	stored, err := k.a.seatNow().Stored(ctx)
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

// resumedName is the file in a checkpoint folder that says which generation went on with it last: what is newer than its step was
// set aside then, so what lies there is of the gang's own branch.
const resumedName = ".muster-resumed"

// resumed is what the file says of a generation.
func (a *agent) resumed(gen int) string {
	return a.id.appID + " " + a.seatNow().Founded().UTC().Format(time.RFC3339Nano) + " " + strconv.Itoa(gen) + "\n"
}

// lastResumed is the generation that a folder last went on with, 0: none of this app's.
func (a *agent) lastResumed(l placement) int {
	a.saves.mu.Lock()
	gen := a.saves.ran
	a.saves.mu.Unlock()
	if onStore(l.dir) {
		return gen
	}
	root, err := openPlace(l.dir, l.place)
	if err != nil {
		return gen
	}
	defer root.Close()
	return max(gen, a.resumedIn(root))
}

func (a *agent) resumedIn(root *os.Root) int {
	text, err := checkpoint.ReadSmall(root, resumedName)
	if err != nil {
		return 0
	}
	gen, err := strconv.Atoi(strings.TrimSpace(string(text[bytes.LastIndexByte(text, ' ')+1:])))
	if err != nil || a.resumed(gen) != string(text) {
		return 0
	}
	return gen
}

// markLate has a folder that was made after its generation began say which that is.
func (a *agent) markLate(p plan.Plan, l placement, s shim.State) {
	a.saves.mu.Lock()
	late := a.saves.ran == s.Gen && a.saves.marked != s.Gen
	a.saves.mu.Unlock()
	if !late || onStore(l.dir) || !a.follows(p, s) {
		return
	}
	root, err := openPlace(l.dir, l.place)
	if err == nil {
		defer root.Close()
		err = a.mark(root, s.Gen)
	}
	if err != nil {
		a.log.Debug("mark the folder of the checkpoints", "dir", l.dir, "err", err)
	}
}

// mark writes resumedName.
func (a *agent) mark(root *os.Root, gen int) error {
	tmp := resumedName + "-" + a.inc[:8] // several agents may write it at once
	if err := checkpoint.WriteNew(root, tmp, a.resumed(gen)); err != nil {
		return err
	}
	if err := root.Rename(tmp, resumedName); err != nil {
		return err
	}
	a.saves.mu.Lock()
	defer a.saves.mu.Unlock()
	a.saves.marked = gen
	return nil
}

// resumeFolder renames what the gang does not go on from, once for each generation and folder: what is newer than its step, or
// everything where that step is not there. nil: nobody has stored anything, and what is here is taken.
func (r gangRoom) resumeFolder(ctx context.Context, p plan.Plan, step *int64, s shim.State) error {
	found, l, err := r.look(ctx, p, false)
	if err != nil {
		return dataError{err}
	}
	root, err := openPlace(l.dir, l.place)
	if errors.Is(err, fs.ErrNotExist) && len(found.Whole)+len(found.Torn) == 0 {
		return r.had(step, nil)
	}
	if err != nil {
		return dataError{err}
	}
	defer root.Close()
	if r.resumedIn(root) >= s.Gen {
		return nil
	}
	if step != nil {
		if err := r.setAside(ctx, p, root, found, *step, s.Gen); err != nil {
			return dataError{err}
		}
	}
	if step == nil && len(found.Whole) == 0 {
		return nil // the folder says it when something is in it
	}
	if err := r.mark(root, s.Gen); err != nil {
		return dataError{err}
	}
	return nil
}

// had fails where this instance counted on a step of its folder that is not there any more.
func (r gangRoom) had(step *int64, found []checkpoint.Checkpoint) error {
	h := r.seat.Record().Here
	if step == nil || h == nil || !slices.Contains(h.Steps, *step) || slices.ContainsFunc(found, func(c checkpoint.Checkpoint) bool { return c.Step == *step }) {
		return nil
	}
	return dataError{fmt.Errorf("step %d, which the gang goes on from, is not in %s any more", *step, r.currentPlan().Checkpoint.Dir)}
}

func (r gangRoom) setAside(ctx context.Context, p plan.Plan, root *os.Root, found checkpoint.Found, step int64, gen int) error {
	if err := r.had(&step, found.Whole); err != nil {
		return err
	}
	from := step
	if _, ok := found.At(step); !ok {
		from = registry.NoStep // what is older is no more of what its peers go on from than what is newer
	}
	moved, err := checkpoint.SetAside(root, found, from, "g"+strconv.Itoa(gen))
	if len(moved) == 0 {
		return err
	}
	r.log.Warn("checkpoints that the gang does not go on from are set aside", "resume", step, "dir", root.Name(), "names", moved)
	if err == nil {
		err = r.tellFramework(ctx, p, root, step)
	}
	return err
}

// tellFramework has TensorFlow's own file name the newest checkpoint that is left, that of the step.
func (a *agent) tellFramework(ctx context.Context, p plan.Plan, root *os.Root, step int64) error {
	found, _, err := a.look(ctx, p, false)
	if err != nil {
		return err
	}
	c, ok := found.At(step)
	if !ok {
		return checkpoint.DropState(root, p.Framework)
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
