package consul

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// ErrNothingLost: the registry has this app's data.
var ErrNothingLost = errors.New("the registry has lost nothing of it")

// Adopt writes the app's data again as this agent knows it, after the registry has lost it or went back to an older
// copy: the app's record with its definition, the newest directive that this agent has seen, and that one's roster, of
// which read is the file. The other members write their own records again as soon as they see the directive. Verdicts
// of earlier runs, what was asked, and the list of stored checkpoints are not among it. It returns the directive that
// was written. The error is ErrNothingLost, or registry.ErrSuperseded if the app was founded anew meanwhile.
func (s *Membership) Adopt(ctx context.Context, read []byte) (registry.Directive, error) {
	g, k := s.gang, s.gang.keys
	mark := g.directive.mark()
	res, err := g.calls.readKeys(ctx, consistent, k.app(), k.directive(), k.verdict(s.app.Run))
	if err != nil {
		return registry.Directive{}, err
	}
	g.observe(res.at(k.directive()), mark)
	if err := s.sameFounding(res.at(k.app())); err != nil {
		return registry.Directive{}, err
	}
	if _, lost, _ := g.directive.now(); !lost {
		return registry.Directive{}, ErrNothingLost
	}
	if err := s.takeVerdict(res.at(k.verdict(s.app.Run))); err != nil {
		return registry.Directive{}, err
	}
	last, _, _ := g.directive.now()
	d := last.directive
	if d.Verdict != nil {
		if err := s.followed(res.at(k.app())); err != nil {
			return registry.Directive{}, err
		}
	}
	if pair := res.at(k.verdict(s.app.Run)); pair != nil { // another than this agent's: what the registry has stands
		v, err := decode[registry.Verdict](pair.Key, pair.Value)
		if err != nil {
			return registry.Directive{}, err
		}
		d.Verdict, d.First = &v, v.First
	}
	d.By, d.Seq, d.Adopted, d.Why = g.me.Member.Inc, d.Seq+1, true, "adopted after the registry lost its data"
	app, chunks, err := s.lostRecord(ctx, d)
	if err != nil {
		return registry.Directive{}, err
	}
	roster, err := s.lostRoster(ctx, d.Roster, read)
	if err != nil && d.Act == registry.ActWait {
		// The roster is of the last generation, or of the last run, which this agent may not have seen.
		d.Roster, roster, err = registry.RosterRef{}, nil, nil
	}
	if err != nil {
		return registry.Directive{}, err
	}
	_, err = g.calls.commit(ctx, k.adopt(res.index(k.app()), res.index(k.directive()), res.index(k.verdict(d.Run)),
		encode(app), d, append(chunks, roster...))...)
	if isRefusal(err) && g.refresh(ctx) == nil { // another member's may have come first
		if _, lost, _ := g.directive.now(); !lost {
			return registry.Directive{}, ErrNothingLost
		}
	}
	if err != nil {
		return registry.Directive{}, err
	}
	g.log.Warn("app adopted: its data was written to the registry again", "run", d.Run, "generation", d.Gen,
		"act", string(d.Act))
	return d, g.refresh(ctx)
}

// followed tells whether the app's record is of another run than this one, which is over: written again, the verdict
// would stand in the place of that run's directive.
func (s *Membership) followed(pair *api.KVPair) error {
	if pair == nil {
		return nil
	}
	app, err := decode[registry.AppRecord](pair.Key, pair.Value)
	if err == nil && app.Run != s.app.Run {
		err = fmt.Errorf("run %s is over, and run %s has begun: %w", s.app.Run, app.Run, ErrNothingLost)
	}
	return err
}

// lostRecord is the app's record under a directive.
func (s *Membership) lostRecord(
	ctx context.Context, d registry.Directive,
) (registry.AppRecord, []*api.TxnOp, error) {
	app := s.app
	app.Counts = d.Counts
	if app.DefID != "" {
		def := s.gang.me.Record.Def
		if registry.DefID(def) != app.DefID {
			return app, nil, errors.New("this agent has another text of the definition than the gang's founder")
		}
		app.Def, app.DefID = def, ""
	}
	return s.gang.fitDefinition(ctx, app, d)
}

// lostRoster writes the roster's chunks, unless they are there, and returns the operation for the first.
func (s *Membership) lostRoster(
	ctx context.Context, ref registry.RosterRef, read []byte,
) ([]*api.TxnOp, error) {
	if ref.ID == "" {
		return nil, nil
	}
	chunks, err := ref.Repack(read)
	if err != nil {
		return nil, fmt.Errorf("this agent has not read roster %s, ask one that runs in it: %w", ref.ID, err)
	}
	var there []*api.TxnOp
	for n, chunk := range chunks {
		index, err := s.gang.calls.ensure(ctx, s.gang.keys.roster(ref.ID, n), chunk)
		if err != nil {
			return nil, err
		}
		there = append(there, opIndex(s.gang.keys.roster(ref.ID, n), index))
	}
	return there, nil
}
