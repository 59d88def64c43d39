package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// askPoll is how often a checkpoint is looked for that a process was asked for.
const askPoll = 100 * time.Millisecond

// Of a grace, what is left to the process for its end however long its checkpoint takes: a part of it, and at most so much.
const (
	endPart = 4
	endMost = 5 * time.Second
)

// asksToSave tells whether the definition says how to ask the process for a checkpoint.
func (m *checkpointManager) asksToSave() bool { return m.plan.Checkpoint.Signal != "" }

// askToSave asks the process for a checkpoint before it is stopped within a grace, and waits for a newer complete one, and for
// its upload where checkpoints are uploaded. False: the process has ended.
func (m *checkpointManager) askToSave(grace time.Duration, over <-chan struct{}) bool {
	wait := grace - min(grace/endPart, endMost)
	if wait <= 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(m.ctx, wait)
	defer cancel()
	before, _, had := m.newest(ctx, nil, false)
	err := m.cfg.Signal(m.plan.Checkpoint.Signal)
	if errors.Is(err, os.ErrProcessDone) {
		return true // whoever stops it finds that out
	}
	if err != nil {
		m.cfg.Log.Warn("ask for a checkpoint", "signal", m.plan.Checkpoint.Signal, "err", err)
		return true
	}
	begun := time.Now()
	m.cfg.Log.Info("asked for a checkpoint before the stop", "signal", m.plan.Checkpoint.Signal)
	tick := time.NewTicker(askPoll)
	defer tick.Stop()
	for {
		c, _, ok := m.newest(ctx, nil, false)
		if ok && (!had || c.Step >= before.Step && c.Stamp() != before.Stamp()) {
			m.see(ctx)
			if k := m.uploader; k == nil || k.has(c) {
				m.cfg.Log.Info("checkpoint is there, stopping", "step", c.Step, "took", time.Since(begun).Round(time.Millisecond))
				return true
			}
		}
		select {
		case <-over:
			return false
		case <-ctx.Done():
			m.cfg.Log.Warn("no newer checkpoint within the grace, stopping", "waited", time.Since(begun).Round(time.Millisecond))
			return true
		case <-tick.C:
		}
	}
}
