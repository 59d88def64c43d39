package main

import (
	"context"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/machine"
)

// How often the checkpoint folder is looked at, and one in a store.
const (
	checkpointPoll = time.Second
	storePoll      = 5 * time.Second
)

// watch follows the checkpoints of the process, and uploads them, until the end that it returns.
func (m *checkpointManager) watch() (end func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	var wg sync.WaitGroup
	if m.plan.Who.Role != string(appdef.RoleService) {
		wg.Go(func() { m.poll(ctx) })
	}
	if k := m.uploader; k != nil {
		wg.Go(func() { k.run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

func (m *checkpointManager) poll(ctx context.Context) {
	poll := checkpointPoll
	if onStore(m.plan.Checkpoint.Dir) {
		poll = storePoll
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		m.see(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookPatience is how long the end of a process waits for a word on its last checkpoint: a store may be away.
const lookPatience = 3 * time.Second

// seeLast is see when a process has ended.
func (m *checkpointManager) seeLast() {
	ctx, cancel := context.WithTimeout(m.ctx, lookPatience)
	seen := make(chan struct{})
	m.tasks.Go(func() {
		defer cancel()
		defer close(seen)
		m.see(ctx)
	})
	select {
	case <-seen:
	case <-ctx.Done():
	}
}

// see tells the machine of a newer whole checkpoint, and has the newest copied to the store.
func (m *checkpointManager) see(ctx context.Context) {
	found, l, err := m.look(ctx, false)
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Debug("look for a checkpoint", "dir", m.plan.Checkpoint.Dir, "err", err)
	}
	c, ok := found.Newest()
	if !ok {
		return
	}
	s := m.cfg.Loop.State()
	m.markLate(l, s)
	if k := m.uploader; k != nil && s.Gen > 0 && s.Attempt > 0 && m.writes(l) {
		k.offer(c, l, s)
	}
	if c.Step > s.Step {
		m.cfg.Loop.Tell(machine.Event{Kind: machine.Progressed, Step: c.Step})
	}
}
