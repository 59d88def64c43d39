package member

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wait"
)

const (
	// rosterPause is the time between two attempts to read a roster.
	rosterPause = 500 * time.Millisecond
	// LeavePatience bounds the last writes of a leaving agent.
	LeavePatience = 5 * time.Second
)

// Do does an effect of the machine on the registry. It tries until the registry has taken it or ctx ends.
func (m *Member) Do(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	held := m.Membership()
	switch e.Kind {
	case machine.DoJoin:
		return m.join(ctx), true
	case machine.DoAcknowledge:
		return m.acknowledge(ctx, e.Gen, s)
	case machine.DoPublish:
		if err := m.announce(ctx); err != nil {
			return m.answer("announce", machine.Event{}, err)
		}
		return m.answer("publish exports", machine.Event{Kind: machine.Published}, held.Publish(ctx, m.update(s)))
	case machine.DoReadRoster:
		return m.readRoster(ctx, e, s)
	case machine.DoReport:
		return m.answer("report", machine.Event{Kind: machine.Reported, Gen: e.Gen}, held.Report(ctx, *e.Report))
	case machine.DoRestarted:
		m.written("report the restart", held.Restarted(ctx, e.Attempt, e.Budget, m.cfg.Hooks.Container().Guard))
	case machine.DoReportUp:
		guard := m.cfg.Hooks.Container().Guard
		m.written("report that it is up", held.Up(ctx, e.Gen, func(r *registry.Member) {
			r.Attempt, r.Budget, r.Guard = e.Attempt, e.Budget, guard
		}))
	case machine.DoLeave:
		m.cfg.Hooks.Settle(ctx, s)
		m.leave(ctx, e)
		m.cfg.Hooks.Conclude(ctx, s)
		return machine.Event{Kind: machine.Left}, true
	case machine.DoStage, machine.DoStart, machine.DoTerminate, machine.DoKill, machine.DoRebind, machine.DoCommit,
		machine.DoArm:
	}
	return machine.Event{}, false
}

// answer is the event that follows a write, or that the registry refuses it for good. Other errors come with the end of
// the effect, or the membership has reported already why it can write no more.
func (m *Member) answer(act string, e machine.Event, err error) (machine.Event, bool) {
	switch {
	case errors.Is(err, registry.ErrForbidden):
		cause := act + ": " + err.Error() + "; " + consul.TokenRemedy(m.cfg.AppID)
		return machine.Event{Kind: machine.Denied, Code: exit.Forbidden, Cause: cause}, true
	case errors.Is(err, registry.ErrMalformed):
		cause := act + ": " + err.Error()
		return machine.Event{Kind: machine.Denied, Code: exit.Internal, Class: registry.ClassMuster, Cause: cause}, true
	}
	return e, m.written(act, err)
}

func (m *Member) written(act string, err error) bool { return written(m.cfg.Log, act, err) }

// written logs the error of a write, unless it is only the end of the effect; false: there was one.
func written(log *slog.Logger, act string, err error) bool {
	if err == nil {
		return true
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, registry.ErrOvertaken) {
		log.Warn("registry write failed", "act", act, "err", err)
	}
	return false
}

func (m *Member) acknowledge(ctx context.Context, gen int, s machine.State) (machine.Event, bool) {
	if err := m.announce(ctx); err != nil {
		return m.answer("announce", machine.Event{}, err)
	}
	update := m.update(s)
	here := m.cfg.Hooks.Here(ctx, s)
	err := m.Membership().Acknowledge(ctx, gen, func(r *registry.Member) {
		update(r)
		r.Here = here
	})
	if errors.Is(err, registry.ErrOvertaken) {
		return machine.Event{Kind: machine.Overtaken, Gen: gen}, true
	}
	return m.answer("acknowledge", machine.Event{Kind: machine.Acked, Gen: gen}, err)
}

// update writes what this agent publishes into its record.
func (m *Member) update(s machine.State) func(*registry.Member) {
	c := m.cfg.Hooks.Container()
	host := m.cfg.Host.Allocation.Host
	exports, address := plan.Publish(c.Plan, host, c.Ports)
	api, peer := m.cfg.State.Socket(m.cfg.AppID, s.Instance.String()), m.peerAPI.Address()
	var unenforced []string
	for _, u := range c.Plan.Engine.Unenforced {
		unenforced = append(unenforced, u.Limit)
	}
	return func(r *registry.Member) {
		// The next agent of the index finds by these folders what this one left.
		r.LogDir, r.WorkDir = c.Logs, c.Plan.Process.Folder
		r.Addr, r.Address, r.Ports, r.Exports = host, address, c.Ports, exports
		r.Guard, r.API, r.Peer = c.Guard, api, peer
		r.Attempt, r.Budget, r.Unenforced = s.Attempt+1, s.Budget, unenforced
	}
}

// readRoster reads a sealed roster, and tells whether its row of this index is this agent's.
func (m *Member) readRoster(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	held := m.Membership()
	roster, text, err := readRoster(ctx, held, e.Roster)
	for err != nil { // the directive that named it comes only once
		if answer, ok := m.answer("read the roster", machine.Event{}, err); ok {
			return answer, true
		}
		if wait.For(ctx, rosterPause) != nil {
			return machine.Event{}, false
		}
		roster, text, err = readRoster(ctx, held, e.Roster)
	}
	m.keepRoster(roster, text, e.Roster.ID)
	row, ok := m.ownRow(roster)
	if !ok {
		return machine.Event{Kind: machine.Mismatch, Gen: roster.Gen}, true
	}
	m.probe.meet(ctx, roster, row.Instance)
	if roster.Gen == s.Gen { // acknowledged: nothing older runs here, and the next start is of this generation
		m.cfg.Hooks.Resume(ctx, s)
	}
	return machine.Event{Kind: machine.Sealed, Gen: roster.Gen}, true
}

// ownRow finds the row that this member may run with as its container is now, whether that was published or not.
func (m *Member) ownRow(roster registry.Roster) (registry.Row, bool) {
	held, c := m.Membership(), m.cfg.Hooks.Container()
	record := held.Record()
	_, record.Address = plan.Publish(c.Plan, m.cfg.Host.Allocation.Host, c.Ports)
	record.Ports, record.Peer = c.Ports, m.peerAPI.Address()
	row, ok := roster.Row(held.Instance())
	return row, ok && record.SameRow(row, c.Plan.Restart.Scope)
}

// leave reports how the process ended, and gives the index back.
func (m *Member) leave(ctx context.Context, e machine.Effect) {
	held := m.Membership()
	if held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, LeavePatience)
	defer cancel()
	switch {
	case e.Report == nil:
	case e.Report.Phase == registry.PhaseFailed, e.Report.Phase == registry.PhaseEnded:
		m.written("report the end", held.Report(ctx, *e.Report))
	default:
		m.written("report the end", held.Publish(ctx, func(r *registry.Member) {
			r.Exit, r.Attempt = &e.Report.Exit, e.Report.Attempt
		}))
	}
	m.written("leave", held.Leave(ctx))
}
