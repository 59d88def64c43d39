package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
)

// following is what one watch knows of its start, in the goroutine that follows it.
type following struct {
	*watch
	health   script.Health
	left     script.Left
	starting bool         // START is at work
	refused  map[int]bool // pid files had these numbers, and they are not START's
	named    script.PID   // the process of a pid file that is the instance, or was
	last     time.Time    // when STATUS was asked last; the zero value: it is asked at once
	mute     time.Time    // since when STATUS cannot be run; the zero value: it can be
	looked   time.Time    // when pid files were read last
	late     time.Time    // until when a pid file may name what START has left
	ended    bool         // there is nothing more to decide
}

// follow asks STATUS, and decides what the instance is once START has ended, until ctx ends.
func (f *following) follow(ctx context.Context) {
	limit := plan.Seconds(f.script.Timeout)
	f.starting, f.refused, f.last = true, map[int]bool{}, time.Now()
	f.late = f.last.Add(limit)
	f.left = script.Left{Up: f.script.Up, Asks: f.script.Asks()}
	f.health.Deaf = !f.left.Asks
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	told := f.told
	if f.health.Deaf {
		f.serving()
	}
	for !f.ended {
		select {
		case <-ctx.Done():
			return
		case <-told:
			told, f.health.Deaf = nil, true // STATUS is not asked any more
		case l := <-f.lingers:
			f.startEnded(ctx, l)
		case <-deadline.C:
			if !f.health.Up && !f.isTold() { // both may have happened while STATUS was asked
				f.fail(registry.ClassTimeout, f.overdue())
			}
		case <-f.turn():
			f.status(ctx)
			f.last = time.Now()
		case <-f.look():
			f.lookAgain(ctx)
		}
	}
}

// turn is when STATUS is asked next; nil: never.
func (f *following) turn() <-chan time.Time {
	owner, _ := f.decided()
	if f.health.Deaf || owner == script.Over {
		return nil
	}
	pause := plan.Seconds(f.script.StatusInterval)
	if !f.health.Up || owner == script.Status && (!f.health.Yes || !f.mute.IsZero()) {
		pause = min(pause, eager)
	}
	return time.After(time.Until(f.last.Add(pause)))
}

// look is when pid files are read again; nil: never.
func (f *following) look() <-chan time.Time {
	if owner, _ := f.decided(); owner != script.Rest || time.Now().After(f.late) {
		return nil
	}
	return time.After(time.Until(f.looked.Add(eager)))
}

// serving notes that the instance is up.
func (f *following) serving() {
	if !f.health.Up {
		f.process.up(f.attempt)
	}
	f.health.Up = true
}

// overdue is the cause of a start that was never up.
func (f *following) overdue() string {
	if f.starting {
		return fmt.Sprintf("START of %s was neither done nor serving after %g s", nameOf(f.script), f.script.Timeout)
	}
	return fmt.Sprintf("START of %s has ended, and STATUS has not said yes within %g s", nameOf(f.script),
		f.script.Timeout)
}

// status asks STATUS once and does what follows.
func (f *following) status(ctx context.Context) {
	was := f.health.Up
	answer, ok := f.ask(ctx)
	if !ok {
		return // the answer does not count
	}
	f.health = f.health.Asked(answer, f.starting)
	if f.health.Up && !was {
		f.process.up(f.attempt)
	}
	if answer.Absent {
		f.left.Asks = false
	}
	owner, _ := f.decided()
	switch {
	case !answer.NotRun:
		f.mute = time.Time{}
	case f.mute.IsZero():
		f.mute = time.Now()
	}
	switch {
	case answer.Absent && owner == script.Status:
		f.decide(ctx)
	case owner == script.Status && answer.NotRun && time.Since(f.mute) > plan.Seconds(f.script.Timeout):
		f.fail(registry.ClassTimeout, fmt.Sprintf("STATUS, which alone says whether the instance is up, cannot be run "+
			"for %g s: %s", f.script.Timeout, answer.Why))
	case !f.health.Dead():
	case owner == script.Status:
		f.denied()
	case owner == script.Rest:
		f.fail(registry.ClassApp, f.health.Cause()+f.left.Doubt())
	default:
		f.fail(registry.ClassApp, f.health.Cause())
	}
}

// denied ends a start whose only owner was STATUS, which has said no for good.
func (f *following) denied() {
	outcome := f.left.Denied(f.health)
	if outcome.OK() {
		f.process.Log.Warn("STATUS has only said no since START ended: START is taken for the program, which has "+
			"run to its end; where STATUS alone says whether the instance is up, set muster.up=status",
			"cause", f.health.Cause())
	}
	f.finish(outcome)
}

// startEnded takes what START has left, or that nothing of it is left.
func (f *following) startEnded(ctx context.Context, l sandbox.Lingers) {
	was, _ := f.decided()
	if was == script.Named {
		lost := f.named
		f.left.Lost = &lost
	}
	if l.Left > 0 { // a pid file may be late as long as START may take
		f.late = time.Now().Add(plan.Seconds(f.script.Timeout))
	}
	f.starting = false
	f.left.Alive, f.left.Ended, f.left.Held = l.Left, endOf(l.Ended),
		was == script.Rest || was == script.Named
	f.left.Served = f.left.Served || f.health.Yes
	f.mu.Lock()
	f.empty = l.Left == 0
	f.mu.Unlock()
	switch {
	case f.empty && f.isTold():
		f.emptied(ctx)
	case was != script.Status && was != script.Over:
		f.decide(ctx)
	}
}

// emptied ends a start that is to end, and of which nothing is left. START may have started something elsewhere after
// STOP was over.
func (f *following) emptied(ctx context.Context) {
	f.mu.Lock()
	owner, stopped := f.owner, f.asked
	f.mu.Unlock()
	if !stopped {
		return // STOP is at work, and ends the start after it
	}
	if owner == "" && f.script.Has(plan.CommandStop) {
		f.orderStop(plan.Seconds(f.process.Plan.Stop.Grace))
	}
	if ctx.Err() == nil {
		f.process.finish()
	}
}

// decide says what the instance is now.
func (f *following) decide(ctx context.Context) {
	f.readPIDs(ctx, true)
	for {
		owner, outcome := f.left.Owner()
		if owner != script.Named {
			f.take(owner, outcome)
			return
		}
		i := slices.IndexFunc(f.left.PIDs, func(p script.PID) bool { return p.Over == nil })
		if f.adopt(f.left.PIDs[i]) {
			return
		}
		f.left.PIDs = slices.Delete(f.left.PIDs, i, i+1)
	}
}

// take makes the start another's than a named process's.
func (f *following) take(owner script.Owner, outcome script.Outcome) {
	log, s := f.process.Log, f.process.filledScript()
	switch owner {
	case script.Rest:
		log.Info("START has left processes behind that no pid file names: they are the instance, until the last of "+
			"them ends", "processes", f.left.Alive, "pid_file", script.PIDFile(s))
		f.own(owner, outcome)
		f.serving()
	case script.Status:
		log.Info("START has ended with 0: STATUS alone says whether the instance is up", "processes", f.left.Alive)
		f.own(owner, outcome)
		f.health.Failures, f.health.Yes, f.last, f.mute = 0, false, time.Time{}, time.Time{}
	case script.Over, script.Named:
		f.finish(outcome)
	}
}

// finish ends a start with its outcome.
func (f *following) finish(outcome script.Outcome) {
	if outcome.Why != "" && !f.isTold() {
		f.fail(registry.ClassApp, outcome.Why)
		return
	}
	f.process.Log.Info("START has ended with 0, and the instance with it", "left", f.left.Alive, "up", f.script.Up,
		"ended", f.left.Ended.String(), "outcome", outcome.End.String())
	f.own(script.Over, outcome)
	f.process.finish()
	f.ended = true
}

// fail ends a start that does not serve.
func (f *following) fail(class registry.Class, why string) { f.ended = f.end(class, why) }

// adopt makes the process of a pid file the instance. False: it is not of this start.
func (f *following) adopt(pid script.PID) bool {
	err := f.process.guards.now().Adopt(pid.PID)
	switch {
	case errors.Is(err, sandbox.ErrNotOurs):
		f.refused[pid.PID] = true
		f.process.Log.Warn("pid file names a process that has ended, or is none of START's: it does not count",
			"pid", pid.PID, "pid_file", pid.File)
		return false
	case err == nil:
		f.process.Log.Info("START has left the process behind", "pid", pid.PID, "pid_file", pid.File)
		f.named, f.left.Lost = pid, nil
		f.own(script.Named, script.Outcome{})
		f.serving()
	case !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, os.ErrProcessDone):
		f.fail(registry.ClassApp, err.Error())
	}
	return true
}

// lookAgain takes the process of a pid file that was not there when START ended.
func (f *following) lookAgain(ctx context.Context) {
	f.readPIDs(ctx, false)
	for _, pid := range f.left.PIDs {
		if pid.Over == nil && !f.refused[pid.PID] && f.adopt(pid) {
			return
		}
	}
}

// readPIDs reads the pid files, and asks how their processes have ended. START may have written its own number.
func (f *following) readPIDs(ctx context.Context, warn bool) {
	f.looked = time.Now()
	f.mu.Lock()
	own := f.pid
	f.mu.Unlock()
	all := f.process.pidFiles(f.process.filledScript(), warn)
	f.left.PIDs = slices.DeleteFunc(slices.Clone(all), func(p script.PID) bool { return p.PID == own })
	f.left.Own = len(f.left.PIDs) < len(all)
	for i := range f.left.PIDs {
		f.askEnd(ctx, &f.left.PIDs[i])
	}
	if f.left.Lost != nil {
		f.askEnd(ctx, f.left.Lost)
	}
}

// askEnd asks the guard how a process has ended.
func (f *following) askEnd(ctx context.Context, pid *script.PID) {
	if x, err := f.process.guards.now().Ended(ctx, pid.PID); err == nil {
		pid.Over = endOf(&x)
	}
}

// endOf is a process's end without its circumstances; nil: none was seen.
func endOf(x *sandbox.Exit) *script.End {
	switch {
	case x == nil || x.Code == nil && x.Signal == 0:
		return nil
	case x.Code != nil:
		return &script.End{Code: *x.Code}
	}
	return &script.End{Signal: x.Signal}
}

// finish lets a start end whose START has ended with 0.
func (p *Process) finish() {
	err := p.guards.now().Finish()
	if err != nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, os.ErrProcessDone) {
		p.Log.Warn("start not finished", "err", err)
		p.Kill()
	}
}
