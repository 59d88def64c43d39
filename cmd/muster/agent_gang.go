package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// rosterPause is how long to wait before a roster that could not be read is asked for again.
const rosterPause = 500 * time.Millisecond

// leavePatience bounds how long a leaving agent tries to tell the registry.
const leavePatience = 5 * time.Second

// gangRoom does the machine's effects on the registry.
type gangRoom struct{ *agent }

// Do tries until the registry has taken it or ctx ends.
func (r gangRoom) Do(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	switch e.Kind {
	case machine.DoJoin:
		return r.join(ctx), true
	case machine.DoAcknowledge:
		return r.acknowledge(ctx, e.Gen, s)
	case machine.DoPublish:
		if err := r.announce(ctx); err != nil {
			return r.told("announce", machine.Event{}, err)
		}
		return r.told("publish exports", machine.Event{Kind: machine.Published}, r.seat.Publish(ctx, r.update(s)))
	case machine.DoReadRoster:
		return r.readRoster(ctx, e, s)
	case machine.DoReport:
		return r.told("report", machine.Event{Kind: machine.Reported}, r.seat.Report(ctx, *e.Report))
	case machine.DoRestarted:
		r.ok("report the restart", r.seat.Restarted(ctx, e.Attempt, e.Budget, r.guardRef()))
	case machine.DoReportUp:
		r.ok("report that it is up", r.seat.Up(ctx, e.Gen, func(m *registry.Member) {
			m.Attempt, m.Budget, m.Guard = e.Attempt, e.Budget, r.guardRef()
		}))
	case machine.DoLeave:
		r.settleOutputs(ctx, s)
		r.leave(ctx, e)
		r.concludeOutputs(ctx, s)
		return machine.Event{Kind: machine.Left}, true
	case machine.DoStage, machine.DoStart, machine.DoTerminate, machine.DoKill, machine.DoRebind, machine.DoCommit, machine.DoArm:
	}
	return machine.Event{}, false
}

// told is the answer to a write: its event, or that the registry will not have it. Other errors come
// with the order's end, or the seat has said already why it can write no more.
func (r gangRoom) told(act string, e machine.Event, err error) (machine.Event, bool) {
	switch {
	case errors.Is(err, registry.ErrForbidden):
		return machine.Event{Kind: machine.Denied, Code: exit.Forbidden, Cause: act + ": " + err.Error()}, true
	case errors.Is(err, registry.ErrMalformed):
		return machine.Event{Kind: machine.Denied, Code: exit.Internal, Class: registry.ClassMuster, Cause: act + ": " + err.Error()}, true
	}
	return e, r.ok(act, err)
}

// ok logs an error that is not simply the order's end.
func (r gangRoom) ok(act string, err error) bool {
	if err == nil {
		return true
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, registry.ErrOvertaken) {
		r.log.Warn("registry write", "act", act, "err", err)
	}
	return false
}

func (r gangRoom) join(ctx context.Context) machine.Event {
	me, err := r.me()
	if err != nil {
		return machine.Event{Kind: machine.Refused, Code: exit.Internal, Cause: err.Error()}
	}
	hooks := consul.Hooks{Alive: r.alive, Clean: r.clean, Answers: r.answers}
	seat, err := r.client.Join(ctx, me, hooks, r.hear)
	if err != nil {
		r.afterVerdict(ctx, err)
		return r.refused(err)
	}
	r.mu.Lock()
	r.seat = seat
	r.mu.Unlock()
	r.watchContact(seat, me.Facts)
	record, in := seat.Record(), seat.Instance()
	directive := seat.Directive()
	r.saveAsked(directive)
	join := machine.Join{Instance: in, Attempt: max(0, record.Attempt-1), Budget: record.Budget}
	join.Spent = record.Phase == registry.PhaseFailed
	if c := r.app.Component(in.Component); c != nil {
		join.Service = c.Settings.Role == "service"
	}
	return machine.Event{Kind: machine.Joined, Joined: &join, Directive: &directive}
}

// refused turns a refusal into the code that the launcher acts on.
func (r gangRoom) refused(err error) machine.Event {
	e := machine.Event{Kind: machine.Refused, Code: exit.Registry, Cause: err.Error()}
	var held *conductor.HeldError
	var digest *conductor.DigestError
	var times *conductor.TimesError
	var run *conductor.RunError
	var over *conductor.FinishedError
	var index *conductor.IndexError
	switch {
	case errors.As(err, &held), errors.As(err, &run):
		e.Code = exit.Held
	case errors.As(err, &digest):
		e.Code = exit.Definition
	case errors.As(err, &index), errors.As(err, &times):
		e.Code = exit.Usage
	case errors.As(err, &over):
		me := ""
		if r.id.instance != nil {
			me = r.id.instance.String()
		}
		e.Code, e.Cause = exit.Of(over.Verdict, me), fmt.Sprintf("run %s is over: %s; --run NAME begins a new one", over.Verdict.Run, withCause(string(over.Verdict.Outcome), over.Verdict.Cause))
		e.Class = over.Verdict.Class
	case errors.Is(err, registry.ErrForbidden):
		e.Code = exit.Forbidden
	case errors.Is(err, registry.ErrMalformed):
		e.Code, e.Class = exit.Internal, registry.ClassMuster
	}
	return e
}

// hear turns what the registry tells into events of the machine.
func (r gangRoom) hear(e registry.Event) {
	switch e := e.(type) {
	case registry.DirectiveSeen:
		r.loop.Tell(machine.Event{Kind: machine.Directed, Directive: &e.Directive})
		r.saveAsked(e.Directive)
	case registry.StandingBy:
		cause := fmt.Sprintf("%s is held by pid %d on %s since %s", e.Instance, e.Holder.Pid, e.Holder.Host, e.Holder.Since.Format(time.RFC3339))
		r.loop.Tell(machine.Event{Kind: machine.Held, Cause: cause})
	case registry.Unreachable:
		r.loop.Tell(machine.Event{Kind: machine.Away, At: e.Since, Cause: fmt.Sprint(e.Err)})
	case registry.Reachable:
		r.loop.Tell(machine.Event{Kind: machine.Back})
	case registry.SupersededBy:
		r.loop.Tell(machine.Event{Kind: machine.Taken, Cause: "another agent holds the index: " + e.Inc})
	case registry.DataLost:
		r.loop.Tell(machine.Event{Kind: machine.DataLost, Cause: e.Why})
	case registry.Conducting:
		r.loop.Tell(machine.Event{Kind: machine.Conducting, On: e.On})
	case registry.Missing:
		r.missing(e.Losses)
	}
}

// missing keeps whom this agent waits for as the conductor.
func (r gangRoom) missing(losses []registry.Loss) {
	var waits []status.Wait
	for _, l := range losses {
		waits = append(waits, status.Wait{Instance: l.Instance.String(), Since: stamp(l.Since), Until: stamp(l.End), Mass: l.Mass})
		r.log.Warn("member is away", "member", l.Instance.String(), "lost_at", stamp(l.End), "most_are_away", l.Mass)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = waits
}

func (r gangRoom) acknowledge(ctx context.Context, gen int, s machine.State) (machine.Event, bool) {
	if err := r.announce(ctx); err != nil {
		return r.told("announce", machine.Event{}, err)
	}
	update := r.update(s)
	here := r.checkpoints.here(ctx, s)
	err := r.seat.Acknowledge(ctx, gen, func(m *registry.Member) {
		update(m)
		m.Here = here
	})
	if errors.Is(err, registry.ErrOvertaken) {
		return machine.Event{Kind: machine.Overtaken, Gen: gen}, true
	}
	return r.told("acknowledge", machine.Event{Kind: machine.Acked, Gen: gen}, err)
}

// update writes what this agent publishes into its record.
func (r gangRoom) update(s machine.State) func(*registry.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	numbers := maps.Clone(r.portOf)
	exports, address := plan.Publish(r.plan, r.alloc.Host, numbers)
	guard := &registry.ProcessRef{Pid: r.guard.PID(), Start: r.guard.StartTicks()}
	api, peer := r.state.Socket(r.id.appID, s.Instance.String()), r.peerAddr
	var unenforced []string
	for _, u := range r.plan.Engine.Unenforced {
		unenforced = append(unenforced, u.Limit)
	}
	logDir, workDir := "", r.plan.Process.Folder // an agent that comes after this one looks for what it has left by that
	if r.publisher != "" {
		logDir = r.instanceLogs()
	}
	return func(m *registry.Member) {
		m.LogDir, m.WorkDir = logDir, workDir
		m.Addr, m.Address, m.Ports, m.Exports = r.alloc.Host, address, numbers, exports
		m.Guard, m.API, m.Peer, m.Attempt, m.Budget, m.Unenforced = guard, api, peer, s.Attempt+1, s.Budget, unenforced
	}
}

// guardRef names the guard for whoever must clear up after this agent.
func (a *agent) guardRef() *registry.ProcessRef {
	g := a.currentGuard()
	return &registry.ProcessRef{Pid: g.PID(), Start: g.StartTicks()}
}

// readRoster tells whether the sealed row of this index is ours.
func (r gangRoom) readRoster(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	roster, raw, err := r.seat.Roster(ctx, e.Roster)
	for err != nil { // the directive that named it comes only once
		if answer, ok := r.told("read the roster", machine.Event{}, err); ok {
			return answer, true
		}
		select {
		case <-ctx.Done():
			return machine.Event{}, false
		case <-time.After(rosterPause):
		}
		roster, raw, err = r.seat.Roster(ctx, e.Roster)
	}
	row, ok := r.ownRow(roster, raw)
	if !ok {
		return machine.Event{Kind: machine.Mismatch, Gen: roster.Gen}, true
	}
	r.near.meet(ctx, roster, row.Instance)
	if roster.Gen == s.Gen { // acknowledged: nothing older runs, and this is what will
		r.checkpoints.resume(ctx, s)
	}
	return machine.Event{Kind: machine.Sealed, Gen: roster.Gen}, true
}

// ownRow keeps the roster, and finds the row that this member may run with as it is now.
func (r gangRoom) ownRow(roster registry.Roster, raw []byte) (registry.Row, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roster, r.rosterAt = roster, raw
	record := r.seat.Record()
	_, record.Address = plan.Publish(r.plan, r.alloc.Host, r.portOf) // as it is now, published or not
	record.Ports, record.Peer = r.portOf, r.peerAddr
	row, ok := roster.Row(r.seat.Instance())
	return row, ok && record.SameRow(row, r.plan.Restart.Scope)
}

func (r gangRoom) leave(ctx context.Context, e machine.Effect) {
	r.mu.Lock()
	seat := r.seat
	r.mu.Unlock()
	if seat == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	switch {
	case e.Report == nil:
	case e.Report.Phase == registry.PhaseFailed:
		r.ok("report the end", seat.Report(ctx, *e.Report))
	default:
		r.ok("report the end", seat.Publish(ctx, func(m *registry.Member) { m.Exit, m.Attempt = &e.Report.Exit, e.Report.Attempt }))
	}
	r.ok("leave", seat.Leave(ctx))
}

// seatNow is the index that this agent holds; nil: none yet.
func (a *agent) seatNow() *consul.Seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seat
}

func (a *agent) currentPlan() plan.Plan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan
}
