package consul

import (
	"context"
	"errors"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// Leave is T14: the process is gone, and this agent leaves. A result that counts (ended, or failed for good) stays in
// the record. A conductor steps down (T16) first. Afterwards, also after an error, the membership is closed.
func (s *Membership) Leave(ctx context.Context) error {
	s.gang.resign()
	err := s.gang.await(ctx)
	if err == nil {
		err = s.depart(ctx)
	}
	s.Close()
	return err
}

func (s *Membership) depart(ctx context.Context) error {
	k := s.gang.keys
	err := s.write(ctx, writing{
		change: func(m *registry.Member) error {
			if !stays(*m) {
				m.Phase = registry.PhaseLeft
			}
			return nil
		},
		around: func(before, after registry.Member, session string) ([]*api.TxnOp, error) {
			ops, err := s.unready(before, after, session)
			return append(ops, opDelete(k.live(s.instance))), err
		},
	})
	if errors.Is(err, registry.ErrSuperseded) {
		return nil // there is nothing of ours to remove
	}
	if err != nil {
		return err
	}
	session := s.held().session
	s.end(errLeft)
	return s.gang.calls.destroySession(ctx, session)
}

// stays tells whether the record holds a result that leaving must not overwrite.
func stays(m registry.Member) bool {
	return m.Phase == registry.PhaseEnded || m.Phase == registry.PhaseFailed && m.Exit != nil && m.Exit.Final
}
