package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
)

// herePatience bounds the look at the checkpoints that a process keeps in a store, while its gang forms.
const herePatience = 30 * time.Second

// Here lists what the checkpoint folder holds while nothing runs: the conductor chooses the step of the gang by it. It
// is nil if this instance resumes by itself.
func (m *Manager) Here(ctx context.Context, s machine.State) *registry.Here {
	if m.isService() || !m.follows(s) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, herePatience)
	defer cancel()
	found, l, err := m.look(ctx, false)
	if err != nil {
		m.cfg.Log.Warn(lookFailed, "dir", m.plan.Checkpoint.Dir, "err", err)
		return &registry.Here{Shared: l.shared, Steps: []int64{}, Unknown: true}
	}
	out := &registry.Here{Gen: m.lastResumed(l), Shared: l.shared, Steps: []int64{}}
	for _, c := range found.Whole[max(0, len(found.Whole)-registry.MostSteps):] {
		out.Steps = append(out.Steps, c.Step)
	}
	return out
}

// Resume prepares the checkpoint folder for a generation: its checkpoint is downloaded where this host lacks it, and
// what is newer than the step of the gang is quarantined. If that fails, so does the start that follows (notReady).
func (m *Manager) Resume(ctx context.Context, s machine.State) {
	if m.isService() {
		return
	}
	m.warnRestart(s)
	inStore := onStore(m.plan.Checkpoint.Dir)
	var err error
	switch {
	case !inStore:
		err = m.ready(ctx, s)
	case m.follows(s):
		err = m.checkUnknown(ctx, s.Directive.Resume)
	}
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Error("resuming from a checkpoint failed", "err", err)
	}
	if err == nil && !inStore {
		m.warnWithout(ctx, s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumedAt = time.Now()
	if m.failed = err; err == nil {
		m.resumed = s.Gen
	}
}

// NotReady is why the next start cannot resume; nil if it can.
func (m *Manager) NotReady() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

func (m *Manager) isService() bool { return m.plan.Who.Role == string(appdef.RoleService) }

// follows tells whether the instance resumes from the step of its gang.
func (m *Manager) follows(s machine.State) bool {
	return s.Policy.Scope != registry.ScopeInstance && m.plan.Checkpoint.Ranks != conductor.RanksEach
}

// warnWithout warns of an instance that starts from nothing while its gang resumes from a step. That is right where one
// rank saves for all and its peers get the state from it. It mixes states where each rank saves its own and only the
// first has done so yet.
func (m *Manager) warnWithout(ctx context.Context, s machine.State) {
	const mended = "it resumes with its gang"
	step := s.Directive.Resume
	if !m.follows(s) || step == nil || *step == registry.NoStep || m.plan.Who.Role == string(appdef.RolePS) {
		m.cfg.Notices.Mended(warnWithout, mended)
		return
	}
	found, _, err := m.look(ctx, false)
	if err != nil {
		return
	}
	if _, ok := found.At(*step); ok {
		m.cfg.Notices.Mended(warnWithout, mended)
		return
	}
	m.cfg.Log.Warn("instance lacks the checkpoint of its gang", "step", *step)
	m.cfg.Notices.Warn(warnWithout, fmt.Sprintf("%s starts without a checkpoint while its gang resumes from step %d; "+
		"set muster.checkpoint.ranks=all if each rank saves its part, or muster.checkpoint.sync if one does for all",
		s.Instance, *step))
}

// warnRestart warns of a gang that starts from the beginning; rank 0 does so for all.
func (m *Manager) warnRestart(s machine.State) {
	why := s.Directive.FromBeginning
	if why == "" || !m.follows(s) {
		m.cfg.Notices.Mended(warnBeginning, "the gang resumes from a checkpoint again")
		return
	}
	m.cfg.Log.Warn("gang starts from the beginning: its ranks have no checkpoint in common", "steps", why)
	if m.plan.Who.Rank != 0 {
		return
	}
	m.cfg.Notices.Warn(warnBeginning, fmt.Sprintf("generation %d starts from the beginning, "+
		"for its ranks have no checkpoint in common: %s; "+
		"existing checkpoints are kept in .muster-set-aside-g%[1]d and in the store's set-aside-g%[1]d; "+
		"set muster.checkpoint.ranks=some where not every rank saves", s.Gen, why))
}

// ready does the work of resume in a folder of this host. Where agents of a host share the folder, one of them works at
// a time.
func (m *Manager) ready(ctx context.Context, s machine.State) error {
	follows := m.follows(s)
	if m.uploader == nil && !follows {
		return nil
	}
	var step *int64
	if follows {
		step = s.Directive.Resume
	}
	found, l, err := m.look(ctx, true)
	if err == nil && l.shared {
		lock, lockErr := m.lockFolder(ctx, l.dir)
		if lockErr != nil {
			return lockErr
		}
		defer func() { _ = lock.Release() }()
		found, l, err = m.look(ctx, false) // another agent may have downloaded it meanwhile
	}
	if err != nil {
		return fault.Data(fmt.Errorf("look for a checkpoint: %w", err))
	}
	if err := m.download(ctx, s, found, step); err != nil {
		return fault.Data(err)
	}
	if !follows {
		return nil
	}
	if err := m.checkUnknown(ctx, step); err != nil {
		return err
	}
	if step != nil {
		// Else checkpoints that are saved from now on would meet the newer ones of a branch that was given up.
		if err := m.cfg.Registry().GiveUp(ctx, *step); err != nil && !errors.Is(err, registry.ErrOvertaken) {
			return fault.Data(fmt.Errorf("give up newer checkpoints: %w", err))
		}
	}
	return m.markResumed(ctx, step, s)
}

// download brings the checkpoint of a step back from the checkpoint store, or quarantines what is stored where the gang
// starts from the beginning.
func (m *Manager) download(ctx context.Context, s machine.State, found format.Found, step *int64) error {
	u := m.uploader
	if u == nil {
		return nil
	}
	if step != nil && *step == registry.NoStep {
		if err := u.quarantine(ctx, s); err != nil {
			return fmt.Errorf("quarantine stored checkpoints: %w", err)
		}
		return nil
	}
	if err := u.download(ctx, s.Instance, found, step); err != nil {
		return fmt.Errorf("download the checkpoint: %w", err)
	}
	return nil
}

// checkUnknown fails where this instance could not look at its checkpoints when its gang chose a step, and the step
// does not suit what it has. The gang forms once more, and then the conductor knows.
func (m *Manager) checkUnknown(ctx context.Context, step *int64) error {
	h := m.cfg.Registry().Record().Here
	if h == nil || !h.Unknown || step != nil && *step == registry.NoStep {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, herePatience)
	defer cancel()
	found, _, err := m.look(ctx, false)
	if err != nil {
		return fault.Data(fmt.Errorf("look for a checkpoint: %w", err))
	}
	suits := len(found.Whole) == 0
	if step != nil {
		_, suits = found.At(*step)
	}
	if suits {
		return nil
	}
	dir := m.plan.Checkpoint.Dir
	return fault.Data(fmt.Errorf("%s could not be read when the gang chose its step, and holds other checkpoints", dir))
}

// lockPoll is the time between two attempts to lock a folder that another agent of this host prepares.
const lockPoll = 50 * time.Millisecond

func (m *Manager) lockFolder(ctx context.Context, dir string) (*hostlock.Lock, error) {
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

// markResumed quarantines what the gang does not resume from, once per generation and folder: what is newer than its
// step, or everything where that step is missing. Without a step nobody has stored anything, and the folder stays as it
// is.
func (m *Manager) markResumed(ctx context.Context, step *int64, s machine.State) error {
	found, l, err := m.look(ctx, false)
	if err != nil {
		return fault.Data(err)
	}
	root, err := m.open(l)
	if errors.Is(err, fs.ErrNotExist) && len(found.Whole)+len(found.Torn) == 0 {
		return m.checkReported(step, nil)
	}
	if err != nil {
		return fault.Data(err)
	}
	defer root.Close()
	if m.markedGeneration(root) >= s.Gen {
		return nil
	}
	if step != nil {
		if err := m.quarantine(ctx, root, found, *step, s.Gen); err != nil {
			return fault.Data(err)
		}
	}
	if step == nil && len(found.Whole) == 0 {
		return nil // marked once there is something in it
	}
	if err := m.mark(root, s.Gen); err != nil {
		return fault.Data(err)
	}
	return nil
}

// checkReported fails where this instance reported a step to the conductor that its folder no longer has.
func (m *Manager) checkReported(step *int64, found []format.Checkpoint) error {
	h := m.cfg.Registry().Record().Here
	if step == nil || h == nil || !slices.Contains(h.Steps, *step) {
		return nil
	}
	if slices.ContainsFunc(found, func(c format.Checkpoint) bool { return c.Step == *step }) {
		return nil
	}
	err := fmt.Errorf("step %d, which the gang resumes from, is no longer in %s", *step, m.plan.Checkpoint.Dir)
	return fault.Data(err)
}

func (m *Manager) quarantine(
	ctx context.Context, root files.UserFolder, found format.Found, step int64, gen int,
) error {
	if err := m.checkReported(&step, found.Whole); err != nil {
		return err
	}
	from := step
	if _, ok := found.At(step); !ok {
		from = registry.NoStep // older checkpoints belong to the step of the gang as little as newer ones
	}
	moved, err := quarantine(root, found, from, "g"+strconv.Itoa(gen))
	if len(moved) == 0 {
		return err
	}
	m.cfg.Log.Warn("checkpoints quarantined", "resume", step, "dir", root.Name(), "names", moved)
	if err == nil {
		err = m.writeState(ctx, root, step)
	}
	return err
}

// writeState has TensorFlow's own file name the checkpoint of the step as the newest.
func (m *Manager) writeState(ctx context.Context, root files.UserFolder, step int64) error {
	found, _, err := m.look(ctx, false)
	if err != nil {
		return err
	}
	c, ok := found.At(step)
	if !ok {
		return dropState(root, m.plan.Framework)
	}
	return writeState(root, m.plan.Framework, found, c)
}
