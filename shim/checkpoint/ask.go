package checkpoint

import (
	"context"
	"errors"
	"os"
	"time"
)

// askPoll is the time between two looks for a checkpoint that was requested.
const askPoll = 100 * time.Millisecond

// The part of a grace that is kept for the end of the process, however long its checkpoint takes: a fraction of the
// grace, and at most this long.
const (
	endPart = 4
	endMost = 5 * time.Second
)

// AsksToSave tells whether the definition names a signal that requests a checkpoint.
func (m *Manager) AsksToSave() bool { return m.plan.Checkpoint.Signal != "" }

// AskToSave requests a checkpoint before the process is stopped within a grace. It waits for a newer complete
// checkpoint, and for its upload where checkpoints are uploaded. It returns false if the process ended meanwhile.
func (m *Manager) AskToSave(grace time.Duration, over <-chan struct{}) bool {
	wait := grace - min(grace/endPart, endMost)
	if wait <= 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(m.ctx, wait)
	defer cancel()
	before, _, had := m.Newest(ctx, nil, false)
	err := m.cfg.Signal(m.plan.Checkpoint.Signal)
	if errors.Is(err, os.ErrProcessDone) {
		return true // stopping it finds the same
	}
	if err != nil {
		m.cfg.Log.Warn("checkpoint request failed", "signal", m.plan.Checkpoint.Signal, "err", err)
		return true
	}
	begun := time.Now()
	took := func() time.Duration { return time.Since(begun).Round(time.Millisecond) }
	m.cfg.Log.Info("checkpoint requested before the stop", "signal", m.plan.Checkpoint.Signal)
	tick := time.NewTicker(askPoll)
	defer tick.Stop()
	for {
		c, _, ok := m.Newest(ctx, nil, false)
		if ok && (!had || c.Step >= before.Step && c.Stamp() != before.Stamp()) {
			m.see(ctx)
			if u := m.uploader; u == nil || u.has(c) {
				m.cfg.Log.Info("requested checkpoint saved", "step", c.Step, "took", took())
				return true
			}
		}
		select {
		case <-over:
			return false
		case <-ctx.Done():
			m.cfg.Log.Warn("no new checkpoint within the grace", "waited", took())
			return true
		case <-tick.C:
		}
	}
}
