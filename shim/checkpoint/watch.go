package checkpoint

import (
	"context"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// The time between two looks at the checkpoint folder, on this host and in a store: the least, and what it doubles to
// while nothing changes.
const (
	folderPoll = time.Second
	storePoll  = 5 * time.Second
	quietPoll  = 10 * time.Second
)

// nextPoll is the time until the next look.
func nextPoll(last, least time.Duration, changed bool) time.Duration {
	if changed {
		return least
	}
	return min(max(2*last, least), quietPoll)
}

// Watch follows the checkpoints of the process and uploads them until the returned function is called.
func (m *Manager) Watch() (end func()) {
	m.mu.Lock()
	m.began = time.Now()
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(m.ctx)
	var wg sync.WaitGroup
	if m.plan.Who.Role != string(appdef.RoleService) {
		wg.Go(func() { m.poll(ctx) })
	}
	if u := m.uploader; u != nil {
		wg.Go(func() { u.run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

func (m *Manager) poll(ctx context.Context) {
	w := watch{m: m, report: m.report, least: folderPoll}
	if onStore(m.plan.Checkpoint.Dir) {
		w.least = storePoll
	}
	w.run(ctx)
}

// watch looks at a checkpoint folder again and again.
type watch struct {
	m      *Manager
	report func(c format.Checkpoint, l location)
	least  time.Duration

	at      location // of this instance's checkpoints, as found at that time
	located time.Time
	stamp   string // of the last own look
	gen     int    // at that time
	wait    time.Duration
	others  unmatched
	shared
}

func (w *watch) run(ctx context.Context) {
	defer w.release()
	for {
		wait := w.turn(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// turn looks once, or takes what another agent of this host has found, and returns when to do it again.
func (w *watch) turn(ctx context.Context) time.Duration {
	m := w.m
	if one, ok := w.borrow(ctx); ok {
		if one.Newest != nil {
			w.report(*one.Newest, w.at)
		}
		return folderPoll // a small file of this host
	}
	began := time.Now()
	found, l, err := m.look(ctx, false)
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Debug(lookFailed, "dir", m.plan.Checkpoint.Dir, "err", err)
	}
	w.at, w.located = l, began
	newest, ok := found.Newest()
	if ok {
		w.report(newest, l)
	}
	w.tellUnmatched(found, l, began, err)
	stamp, gen := found.Stamp(), m.cfg.Loop.State().Gen
	w.wait = nextPoll(w.wait, w.least, stamp != w.stamp || gen != w.gen)
	w.stamp, w.gen = stamp, gen
	if l.shared && err == nil && w.leads() {
		one := listing{At: began}
		if ok {
			one.Newest = &newest
		}
		if err := status.WriteJSON(w.path, one); err != nil {
			m.cfg.Log.Debug("sharing the list of checkpoints failed", "err", err)
		}
	}
	return w.wait
}

// lookPatience bounds how long the end of a process waits for a look at its last checkpoint: a store may be
// unreachable.
const lookPatience = 3 * time.Second

// SeeLast looks for the last checkpoint of a process that has ended. One that failed is warned of checkpoints that its
// next start will not find.
func (m *Manager) SeeLast(x *machine.Exit) {
	ctx, cancel := context.WithTimeout(m.ctx, lookPatience)
	seen := make(chan struct{})
	m.tasks.Go(func() {
		defer cancel()
		defer close(seen)
		if found, l, ok := m.see(ctx); ok && len(found.Whole) == 0 && !x.OK() {
			m.warnNone(ctx, found, l)
		}
	})
	select {
	case <-seen:
	case <-ctx.Done():
	}
}

// see looks at the folder, and reports what it finds.
func (m *Manager) see(ctx context.Context) (format.Found, location, bool) {
	found, l, err := m.look(ctx, false)
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Debug(lookFailed, "dir", m.plan.Checkpoint.Dir, "err", err)
	}
	if c, ok := found.Newest(); ok {
		m.report(c, l)
	}
	return found, l, err == nil
}

// report tells the machine of a newer complete checkpoint, and offers the newest to the uploader.
func (m *Manager) report(c format.Checkpoint, l location) {
	s := m.cfg.Loop.State()
	m.markLate(l, s)
	if u := m.uploader; u != nil && s.Gen > 0 && s.Attempt > 0 && m.uploads(l) {
		u.offer(c, l, s)
	}
	if c.Step > s.Step {
		m.cfg.Loop.Tell(machine.Event{Kind: machine.Progressed, Step: c.Step})
	}
}
