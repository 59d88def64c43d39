package consul

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// errSame: a change changes nothing, so nothing is written.
var errSame = errors.New("record unchanged")

// writing is one change of the own record, with everything that goes into the same transaction.
type writing struct {
	// change makes the next record, or returns why it must not.
	change func(*registry.Member) error
	// around are further operations; before is the record that change was given.
	around func(before, after registry.Member, session string) ([]*api.TxnOp, error)
}

// write repeats a writing until it is done or pointless. After a refusal it reads and decides again; after an unknown
// result it reads and compares. While the registry is unreachable it waits until the context ends.
func (s *Membership) write(ctx context.Context, w writing) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.giveTurn()
	var sent []registry.Member
	var b backoff
	for {
		done, err := s.attempt(ctx, w, &sent)
		if done {
			return nil
		}
		if err != nil && !s.passes(err) {
			return err
		}
		if err == nil {
			continue
		}
		s.doubt()
		if !isRefusal(err) {
			s.gang.log.Warn("registry write is tried again", "instance", s.instance.String(), "err", err)
		}
		if err := pause(ctx, b.next()); err != nil {
			return err
		}
	}
}

// attempt first reconciles if there is doubt, then sends the transaction once.
func (s *Membership) attempt(ctx context.Context, w writing, sent *[]registry.Member) (done bool, err error) {
	if s.doubtful() {
		return s.reconcile(ctx, *sent)
	}
	k, h := s.gang.keys, s.held()
	after := cloneMember(h.record)
	if err := w.change(&after); err != nil {
		return errors.Is(err, errSame), err
	}
	around, err := w.around(h.record, after, h.session)
	if err != nil {
		return false, err
	}
	*sent = append(*sent, after)
	s.doubt() // until it is answered, and for the next writer if this one gives up
	res, err := s.gang.calls.commit(ctx, k.record(s.instance, h.session, h.index, encode(after), around)...)
	if err == nil {
		s.take(after, res.index(k.member(s.instance)))
		return true, nil
	}
	if isRefusal(err) { // reconcile at once: nothing was written
		return s.reconcile(ctx, *sent)
	}
	return false, err
}

// Acknowledge is T4: nothing older than gen runs here, the ports are bound, and update has put the exports into the
// record. It returns registry.ErrOvertaken if there is a newer directive, and ErrSuperseded if another agent has the
// index. It waits for an unreachable registry.
func (s *Membership) Acknowledge(ctx context.Context, gen int, update func(*registry.Member)) error {
	k := s.gang.keys
	change := func(m *registry.Member) error {
		if d := s.Directive(); d.Gen != gen || d.Act == registry.ActStop {
			return fmt.Errorf("acknowledge generation %d: %w", gen, registry.ErrOvertaken)
		}
		if update != nil {
			update(m)
		}
		m.Gen, m.Phase = gen, registry.PhaseReady
		return nil
	}
	around := func(before, _ registry.Member, session string) ([]*api.TxnOp, error) {
		all := k.acknowledge(s.instance, session, gen, before.Gen)
		if before.Gen != gen {
			return all, nil
		}
		// T4b: acknowledged before, and failed or fenced since. Allowed only while the component is not released.
		last, _, _ := s.gang.directive.now()
		if last == nil || last.directive.Gen != gen || last.directive.Act != registry.ActWait {
			return nil, fmt.Errorf("acknowledge generation %d again: %w", gen, registry.ErrOvertaken)
		}
		return append(all, opIndex(k.directive(), last.index)), nil
	}
	return s.write(ctx, writing{change, around})
}

// Report is T10: it reports that the process is gone.
func (s *Membership) Report(ctx context.Context, r registry.Report) error {
	return s.write(ctx, writing{
		change: func(m *registry.Member) error {
			exit := r.Exit
			m.Phase, m.Exit, m.Attempt, m.Budget = r.Phase, &exit, r.Attempt, r.Budget
			return nil
		},
		around: s.unready,
	})
}

// unready takes an acknowledgement back.
func (s *Membership) unready(before, _ registry.Member, _ string) ([]*api.TxnOp, error) {
	return s.gang.keys.unready(s.instance, before.Gen), nil
}

func alone(_, _ registry.Member, _ string) ([]*api.TxnOp, error) { return nil, nil }

// Restarted is T10b: the process was restarted in place, under that guard. No watch wakes.
func (s *Membership) Restarted(ctx context.Context, attempt int, b registry.Budget, guard *registry.ProcessRef) error {
	return s.Publish(ctx, func(m *registry.Member) { m.Attempt, m.Budget, m.Guard = attempt, b, guard })
}

// Up is T10b as well: the process serves in generation gen (for a service: the directive's), and others wait for that.
// update adds what earlier writes may have missed: attempt, budget, guard. It writes nothing if the record says all
// that already. No watch wakes: the conductor reads the record when it needs it. The error is registry.ErrOvertaken if
// the process belongs to an older generation than the record.
func (s *Membership) Up(ctx context.Context, gen int, update func(*registry.Member)) error {
	return s.write(ctx, writing{
		change: func(m *registry.Member) error {
			before := encode(*m)
			if m.Gen > gen {
				return fmt.Errorf("report that generation %d is up: %w", gen, registry.ErrOvertaken)
			}
			if update != nil {
				update(m)
			}
			if m.Up = gen; bytes.Equal(encode(*m), before) {
				return errSame
			}
			return nil
		},
		around: alone,
	})
}

// Publish changes the record without an acknowledgement: it is for the exports of a service, which nobody waits for.
func (s *Membership) Publish(ctx context.Context, update func(*registry.Member)) error {
	return s.write(ctx, writing{
		change: func(m *registry.Member) error {
			inc, run := m.Inc, m.Run
			update(m)
			m.Inc, m.Run = inc, run
			return nil
		},
		around: alone,
	})
}

// Saved records the instance's answer to a save, unless it has answered a later one. No watch wakes: the conductor
// reads the record when it needs it.
func (s *Membership) Saved(ctx context.Context, saved registry.Saved) error {
	return s.write(ctx, writing{
		change: func(m *registry.Member) error {
			if m.Saved != nil && m.Saved.Seq > saved.Seq {
				return errSame
			}
			m.Saved = &saved
			return nil
		},
		around: alone,
	})
}
