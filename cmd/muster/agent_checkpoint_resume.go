package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// prepare opens the store, clears what an earlier agent of this index left half there, and tells the registry what the store
// has where it knows nothing.
func (m *checkpointManager) prepare(ctx context.Context, p plan.Plan, in registry.Instance) error {
	m.plan = p
	k, err := m.openUploader(ctx)
	if k == nil || err != nil {
		return err
	}
	if err := k.vault.Sweep(ctx, in.String()); err != nil {
		return fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	if err := k.store.MkdirAll(ctx, k.vault.Top+"/"+in.String()); err != nil { // what may not be written is told now
		return fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	if err := k.adopt(ctx, in); err != nil {
		return fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	m.uploader = k
	return nil
}

// herePatience is how long a gang's formation waits for a store's word on the checkpoints that a process keeps there itself.
const herePatience = 30 * time.Second

// here is what the folder of the checkpoints has while nothing runs there, for whom the gang's step is chosen; nil: this instance
// goes on by itself.
func (m *checkpointManager) here(ctx context.Context, s machine.State) *registry.Here {
	if m.plan.Who.Role == string(appdef.RoleService) || s.Policy.Scope == registry.ScopeInstance || m.plan.Checkpoint.Ranks == conductor.RanksEach {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, herePatience)
	defer cancel()
	found, l, err := m.look(ctx, false)
	if err != nil {
		m.cfg.Log.Warn("look for a checkpoint", "dir", m.plan.Checkpoint.Dir, "err", err)
		return &registry.Here{Shared: l.shared, Steps: []int64{}, Unknown: true}
	}
	out := &registry.Here{Gen: m.lastResumed(l), Shared: l.shared, Steps: []int64{}}
	for _, c := range found.Whole[max(0, len(found.Whole)-registry.MostSteps):] {
		out.Steps = append(out.Steps, c.Step)
	}
	return out
}

// resume has the folder of the checkpoints hold what this generation goes on from: brought from the store where it is not here, and
// what is newer than a gang's own step set aside. The start that follows fails with what keeps it from that.
func (m *checkpointManager) resume(ctx context.Context, s machine.State) {
	if m.plan.Who.Role == string(appdef.RoleService) {
		return
	}
	m.tellAnew(s)
	var err error
	if !onStore(m.plan.Checkpoint.Dir) {
		err = m.ready(ctx, s)
	} else if m.follows(s) {
		err = m.wasDark(ctx, s.Directive.Resume)
	}
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Error("the checkpoint to go on from is not here", "err", err)
	}
	if err == nil && !onStore(m.plan.Checkpoint.Dir) {
		m.tellWithout(ctx, s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed = err; err == nil {
		m.resumed = s.Gen
	}
}

// tellWithout warns of an instance that starts from nothing while its gang goes on from a step: right where one saves for all and
// its peers get the state from it, and a mixture where each saves its own and the first alone has done so yet.
func (m *checkpointManager) tellWithout(ctx context.Context, s machine.State) {
	step := s.Directive.Resume
	if !m.follows(s) || step == nil || *step == registry.NoStep || m.plan.Who.Role == string(appdef.RolePS) {
		m.cfg.Notices.Mended(warnWithout, "it goes on with its gang")
		return
	}
	found, _, err := m.look(ctx, false)
	if err != nil {
		return
	}
	if _, ok := found.At(*step); ok {
		m.cfg.Notices.Mended(warnWithout, "it goes on with its gang")
		return
	}
	m.cfg.Log.Warn("the gang goes on from a step that this instance does not have; it starts without", "step", *step)
	m.cfg.Notices.Warn(warnWithout, fmt.Sprintf("%s starts without a checkpoint while its gang goes on from step %d; "+
		"muster.checkpoint.ranks=all where each rank saves its own part, muster.checkpoint.sync where others shall have what one saves", s.Instance, *step))
}

// tellAnew warns of a gang that begins anew; one of it does, for all.
func (m *checkpointManager) tellAnew(s machine.State) {
	if why := s.Directive.Anew; why != "" && m.follows(s) {
		m.cfg.Log.Warn("the gang begins anew, for ranks have checkpoints and none is everybody's", "steps", why)
		if m.plan.Who.Rank == 0 {
			m.cfg.Notices.Warn(warnAnew, "generation "+strconv.Itoa(s.Gen)+" begins anew, for no checkpoint is everybody's: "+why+
				"; what there is, is kept in .muster-set-aside-g"+strconv.Itoa(s.Gen)+" and in the store's set-aside-g"+strconv.Itoa(s.Gen)+
				"; muster.checkpoint.ranks=some where not every rank saves")
		}
		return
	}
	m.cfg.Notices.Mended(warnAnew, "the gang goes on from a checkpoint again")
}

// follows tells that an instance goes on from its gang's step.
func (m *checkpointManager) follows(s machine.State) bool {
	return s.Policy.Scope != registry.ScopeInstance && m.plan.Checkpoint.Ranks != conductor.RanksEach
}

// ready does resume's work, one agent of a host at a time where they share the folder.
func (m *checkpointManager) ready(ctx context.Context, s machine.State) error {
	k, follows := m.uploader, m.follows(s)
	if k == nil && !follows {
		return nil
	}
	var resume *int64
	if follows {
		resume = s.Directive.Resume
	}
	found, l, err := m.look(ctx, true)
	if err != nil {
		return fault.Data(fmt.Errorf("look for a checkpoint: %w", err))
	}
	if l.shared {
		lock, err := m.lockFolder(ctx, l.dir)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Release() }()
		if found, l, err = m.look(ctx, false); err != nil { // another has brought it meanwhile
			return fault.Data(fmt.Errorf("look for a checkpoint: %w", err))
		}
	}
	anew := resume != nil && *resume == registry.NoStep
	switch {
	case k == nil:
	case anew:
		if err := k.setAside(ctx, s); err != nil {
			return fault.Data(fmt.Errorf("set aside what is stored: %w", err))
		}
	default:
		if err := k.bring(ctx, s.Instance, found, resume); err != nil {
			return fault.Data(fmt.Errorf("bring the checkpoint back: %w", err))
		}
	}
	if !follows {
		return nil
	}
	if err := m.wasDark(ctx, resume); err != nil {
		return err
	}
	if resume != nil {
		if err := m.cfg.Registry().GiveUp(ctx, *resume); err != nil && !errors.Is(err, registry.ErrOvertaken) {
			return fault.Data(fmt.Errorf("give newer checkpoints up: %w", err)) // what is saved from now on would meet them
		}
	}
	return m.resumeFolder(ctx, resume, s)
}

// wasDark fails where this instance could not tell what it has when its gang chose a step, and the choice does not suit it: the
// gang forms once more, and then it is known.
func (m *checkpointManager) wasDark(ctx context.Context, resume *int64) error {
	h := m.cfg.Registry().Record().Here
	if h == nil || !h.Unknown || resume != nil && *resume == registry.NoStep {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, herePatience)
	defer cancel()
	found, _, err := m.look(ctx, false)
	if err != nil {
		return fault.Data(fmt.Errorf("look for a checkpoint: %w", err))
	}
	suits := len(found.Whole) == 0
	if resume != nil {
		_, suits = found.At(*resume)
	}
	if suits {
		return nil
	}
	return fault.Data(fmt.Errorf("what %s has could not be looked at when the gang chose a step, and it is another", m.plan.Checkpoint.Dir))
}

// setAside keeps what this instance has stored, and has nobody go on from it.
func (k *uploader) setAside(ctx context.Context, s machine.State) error {
	moved, err := k.vault.SetAside(ctx, s.Instance.String(), "g"+strconv.Itoa(s.Gen))
	if len(moved) > 0 {
		k.m.cfg.Log.Warn("stored checkpoints are set aside", "number", len(moved), "newest", moved[len(moved)-1].Step)
	}
	return err
}

// lockPoll is how often a folder is asked for that another agent of this host lays a checkpoint out in.
const lockPoll = 50 * time.Millisecond

func (m *checkpointManager) lockFolder(ctx context.Context, dir string) (*hostlock.Lock, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		lock, err := hostlock.Take("resume/" + m.cfg.AppID + "/" + files.Resolve(dir))
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

// resumeFolder renames what the gang does not go on from, once for each generation and folder: what is newer than its step, or
// everything where that step is not there. nil: nobody has stored anything, and what is here is taken.
func (m *checkpointManager) resumeFolder(ctx context.Context, step *int64, s machine.State) error {
	found, l, err := m.look(ctx, false)
	if err != nil {
		return fault.Data(err)
	}
	root, err := openPlace(l.dir, l.place)
	if errors.Is(err, fs.ErrNotExist) && len(found.Whole)+len(found.Torn) == 0 {
		return m.had(step, nil)
	}
	if err != nil {
		return fault.Data(err)
	}
	defer root.Close()
	if m.resumedIn(root) >= s.Gen {
		return nil
	}
	if step != nil {
		if err := m.setAside(ctx, root, found, *step, s.Gen); err != nil {
			return fault.Data(err)
		}
	}
	if step == nil && len(found.Whole) == 0 {
		return nil // the folder says it when something is in it
	}
	if err := m.mark(root, s.Gen); err != nil {
		return fault.Data(err)
	}
	return nil
}

// had fails where this instance counted on a step of its folder that is not there any more.
func (m *checkpointManager) had(step *int64, found []format.Checkpoint) error {
	h := m.cfg.Registry().Record().Here
	if step == nil || h == nil || !slices.Contains(h.Steps, *step) || slices.ContainsFunc(found, func(c format.Checkpoint) bool { return c.Step == *step }) {
		return nil
	}
	return fault.Data(fmt.Errorf("step %d, which the gang goes on from, is not in %s any more", *step, m.plan.Checkpoint.Dir))
}

func (m *checkpointManager) setAside(ctx context.Context, root *os.Root, found format.Found, step int64, gen int) error {
	if err := m.had(&step, found.Whole); err != nil {
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
	m.cfg.Log.Warn("checkpoints that the gang does not go on from are set aside", "resume", step, "dir", root.Name(), "names", moved)
	if err == nil {
		err = m.tellFramework(ctx, root, step)
	}
	return err
}

// tellFramework has TensorFlow's own file name the newest checkpoint that is left, that of the step.
func (m *checkpointManager) tellFramework(ctx context.Context, root *os.Root, step int64) error {
	found, _, err := m.look(ctx, false)
	if err != nil {
		return err
	}
	c, ok := found.At(step)
	if !ok {
		return checkpoint.DropState(root, m.plan.Framework)
	}
	return checkpoint.WriteState(root, m.plan.Framework, found, c, m.owner())
}

// notReady is what keeps a start from going on from where it should.
func (m *checkpointManager) notReady() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}
