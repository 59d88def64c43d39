package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
)

// askPoll is how often a checkpoint is looked for that a process was asked for.
const askPoll = 100 * time.Millisecond

// Of a grace, what is left to the process for its end however long its checkpoint takes: a part of it, and at most so much.
const (
	endPart = 4
	endMost = 5 * time.Second
)

// stop asks the process to end; to save itself first, where the definition says how to ask for that.
func (r engineRoom) stop(s machine.State) {
	r.mu.Lock()
	p, over := r.plan, r.over
	r.mu.Unlock()
	wait := s.StopGrace()
	wait -= min(wait/endPart, endMost)
	if p.Checkpoint.Signal == "" || over == nil || wait <= 0 {
		r.signalStop()
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		if r.askedToSave(ctx, p, over) {
			r.signalStop()
		}
	}()
}

// askedToSave sends the signal and waits for a newer whole checkpoint, and for its copy in the store where there is one. False:
// the process has ended.
func (r engineRoom) askedToSave(ctx context.Context, p plan.Plan, over <-chan struct{}) bool {
	before, _, had := r.newest(ctx, p, nil, false)
	number, err := status.ParseSignal(p.Checkpoint.Signal)
	if err == nil {
		err = r.currentGuard().Signal(syscall.Signal(number))
	}
	if errors.Is(err, sandbox.ErrGone) || errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return true // whoever stops it finds that out
	}
	if err != nil {
		r.log.Warn("ask for a checkpoint", "signal", p.Checkpoint.Signal, "err", err)
		return true
	}
	begun := time.Now()
	r.log.Info("asked for a checkpoint before the stop", "signal", p.Checkpoint.Signal)
	tick := time.NewTicker(askPoll)
	defer tick.Stop()
	for {
		c, _, ok := r.newest(ctx, p, nil, false)
		if ok && (!had || c.Step >= before.Step && c.Stamp() != before.Stamp()) {
			r.seeCheckpoint(ctx, p)
			if k := r.keeperNow(); k == nil || k.has(c) {
				r.log.Info("checkpoint is there, stopping", "step", c.Step, "took", time.Since(begun).Round(time.Millisecond))
				return true
			}
		}
		select {
		case <-over:
			return false
		case <-ctx.Done():
			r.log.Warn("no newer checkpoint within the grace, stopping", "waited", time.Since(begun).Round(time.Millisecond))
			return true
		case <-tick.C:
		}
	}
}
