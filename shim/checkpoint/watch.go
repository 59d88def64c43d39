package checkpoint

import (
	"context"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/machine"
)

// The time between two looks at the checkpoint folder, on this host and in a store.
const (
	folderPoll = time.Second
	storePoll  = 5 * time.Second
)

// Watch follows the checkpoints of the process and uploads them until the returned function is called.
func (m *Manager) Watch() (end func()) {
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
	poll := folderPoll
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

// lookPatience bounds how long the end of a process waits for a look at its last checkpoint: a store may be
// unreachable.
const lookPatience = 3 * time.Second

// SeeLast looks for the last checkpoint of a process that has ended.
func (m *Manager) SeeLast() {
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

// see reports a newer complete checkpoint to the machine, and offers the newest to the uploader.
func (m *Manager) see(ctx context.Context) {
	found, l, err := m.look(ctx, false)
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Debug(lookFailed, "dir", m.plan.Checkpoint.Dir, "err", err)
	}
	c, ok := found.Newest()
	if !ok {
		return
	}
	s := m.cfg.Loop.State()
	m.markLate(l, s)
	if u := m.uploader; u != nil && s.Gen > 0 && s.Attempt > 0 && m.uploads(l) {
		u.offer(c, l, s)
	}
	if c.Step > s.Step {
		m.cfg.Loop.Tell(machine.Event{Kind: machine.Progressed, Step: c.Step})
	}
}
