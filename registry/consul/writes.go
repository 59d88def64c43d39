package consul

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// direct writes a directive, with further operations in between (T11, and part of T5 and T12).
func (c *conducting) direct(ctx context.Context, index uint64, d registry.Directive, with ...*api.TxnOp) error {
	counts, err := c.counted(ctx, d)
	if err != nil {
		return err
	}
	value := encode(d)
	res, err := c.bulk.commit(ctx, c.keys.direct(c.session, index, value, slices.Concat(counts, with))...)
	if err != nil {
		return err
	}
	pair := &api.KVPair{
		Key: c.keys.directive(), Value: value, ModifyIndex: res.index(c.keys.directive()),
		Session: c.session,
	}
	c.observe(pair, unsure)
	if d.Roster.ID != c.view.Directive.Roster.ID {
		c.view.Roster = nil
	}
	c.view.Directive, c.view.DirectiveIndex = d, pair.ModifyIndex
	c.log.Info("directive written", "run", d.Run, "generation", d.Gen, "act", string(d.Act), "why", d.Why)
	return nil
}

// counted writes the counts of a directive into the app's record: readers of both must find the same.
func (c *conducting) counted(ctx context.Context, d registry.Directive) ([]*api.TxnOp, error) {
	if maps.Equal(d.Counts, c.view.Directive.Counts) {
		return nil, nil
	}
	pair, err := c.bulk.get(ctx, c.keys.app(), consistent)
	if err != nil {
		return nil, err
	}
	if pair == nil {
		return nil, errDataLost
	}
	app, err := decode[registry.AppRecord](pair.Key, pair.Value)
	if err != nil {
		return nil, err
	}
	app.Counts = d.Counts
	return []*api.TxnOp{opCAS(c.keys.app(), pair.ModifyIndex, encode(app))}, nil
}

// seal is T5. All chunks but the first are written before: nobody reads them until a directive names them. A chunk that
// is there has the same content, which it is named by: a flex may lead back to the members of before.
func (c *conducting) seal(ctx context.Context, e conductor.Seal) error {
	id := e.Packed.Ref.ID
	for n := 1; n < len(e.Packed.Chunks); n++ {
		_, err := c.bulk.commit(ctx, opCAS(c.keys.roster(id, n), 0, e.Packed.Chunks[n]))
		if err != nil && !isRefusal(err) { // refused: it is there already, named by its content
			return err
		}
	}
	if err := c.direct(ctx, e.Index, e.Directive, opSet(c.keys.roster(id, 0), e.Packed.Chunks[0])); err != nil {
		return err
	}
	c.view.Roster = &e.Roster
	return nil
}

// end is T12.
func (c *conducting) end(ctx context.Context, e conductor.End) error {
	err := c.direct(ctx, e.Index, e.Directive, opCAS(c.keys.verdict(e.Verdict.Run), 0, encode(e.Verdict)))
	if isRefusal(err) {
		return c.endAsWritten(ctx, e, err)
	}
	if err != nil {
		return err
	}
	c.log.Info("verdict written", "run", e.Verdict.Run, "outcome", string(e.Verdict.Outcome),
		"class", string(e.Verdict.Class), "cause", e.Verdict.Cause)
	return nil
}

// endAsWritten ends the run with the verdict that is there already: one that nobody can replace. Without one the
// refusal stands.
func (c *conducting) endAsWritten(ctx context.Context, e conductor.End, refused error) error {
	pair, err := c.bulk.get(ctx, c.keys.verdict(e.Verdict.Run), consistent)
	if err != nil {
		return err
	}
	if pair == nil {
		return refused
	}
	v, err := decode[registry.Verdict](pair.Key, pair.Value)
	if err != nil {
		return err
	}
	d := e.Directive
	d.Verdict, d.Why, d.First = &v, v.Cause, v.First
	c.log.Warn("the run has a verdict already", "run", v.Run, "outcome", string(v.Outcome), "cause", v.Cause)
	return c.direct(ctx, e.Index, d, opIndex(pair.Key, pair.ModifyIndex))
}

// One transaction declares so many members lost: it has 128 operations, two for each member, and 512 KB in base64.
const (
	lostAtOnce = 60
	lostBytes  = 256 << 10
)

// leadingLosses are the effects at the beginning that one transaction can write.
func leadingLosses(effects []conductor.Effect) []conductor.Lost {
	var all []conductor.Lost
	size := 0
	for _, e := range effects[:min(len(effects), lostAtOnce)] {
		lost, ok := e.(conductor.Lost)
		if !ok {
			break
		}
		if size += len(encode(lost.Member)); size > lostBytes && len(all) > 0 {
			break
		}
		all = append(all, lost)
	}
	return all
}

// declareLost is T7, for all of them or none: if one is back, everything is read again.
func (c *conducting) declareLost(ctx context.Context, all []conductor.Lost) error {
	res, err := c.bulk.commit(ctx, c.keys.lost(c.session, all)...)
	if err != nil {
		return err
	}
	records := maps.Clone(c.view.Records)
	for _, e := range all {
		index := res.index(c.keys.member(e.Instance))
		records[e.Instance] = conductor.Record{Member: e.Member, Index: index, At: time.Now()}
		c.log.Info("member lost", "instance", e.Instance.String(), "inc", e.Member.Inc)
	}
	c.view.Records = records
	return nil
}

func (c *conducting) dropAsk(ctx context.Context, a registry.Ask) error {
	_, err := c.bulk.commit(ctx, c.keys.drop(c.session, a)...)
	if err == nil {
		c.view.Asks = without(c.view.Asks, a)
	}
	return err
}

func without(asks []registry.Ask, a registry.Ask) []registry.Ask {
	var rest []registry.Ask
	for _, o := range asks {
		if o.Kind != a.Kind || o.ID != a.ID {
			rest = append(rest, o)
		}
	}
	return rest
}

// cleanUp follows a verdict. What it fails to remove goes with `forget`.
func (c *conducting) cleanUp(ctx context.Context, keep string) error {
	names, err := c.bulk.names(ctx, c.keys.rosters(), "")
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		id, _, _ := strings.Cut(strings.TrimPrefix(name, c.keys.rosters()), "/")
		return id == keep
	})
	_, err = c.bulk.commit(ctx, c.keys.cleanUp(c.session, names)...)
	if isRefusal(err) {
		return errLockLost
	}
	if err == nil {
		c.view.Asks = nil
	}
	return err
}
