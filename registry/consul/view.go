package consul

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

func (c *conducting) readReady(ctx context.Context) error {
	gen := c.view.Directive.Gen
	prefix := c.keys.ready(gen)
	names, err := c.bulk.names(ctx, prefix, "")
	if err != nil {
		return err
	}
	c.view.Ready, c.view.ReadyGen, c.view.ReadyAt = setOf(instancesAt(prefix, names)), gen, time.Now()
	return nil
}

func (c *conducting) readRoster(ctx context.Context, ref registry.RosterRef) error {
	packed, err := c.packed(ctx, c.keys, ref)
	if err != nil {
		return err
	}
	r, _, err := registry.Unpack(ref, packed)
	if err != nil {
		return err
	}
	c.view.Roster = &r
	return nil
}

func (c *conducting) readRecords(ctx context.Context, e conductor.ReadRecords) error {
	var err error
	switch {
	case e.All:
		err = c.readAll(ctx)
	case len(e.Of) > 0:
		err = c.readSome(ctx, e.Of)
	}
	if err == nil && e.Checkpoints {
		err = c.readCheckpoints(ctx)
	}
	return err
}

func (c *conducting) readAll(ctx context.Context) error {
	res, err := c.bulk.transact(ctx, consistent, ops{opGetTree(c.keys.members()), opGetTree(c.keys.lives())})
	if err != nil {
		return err
	}
	now := time.Now()
	records := make(map[registry.Instance]conductor.Record, len(res))
	for key := range res {
		if in, ok := instanceAt(c.keys.members(), key); ok {
			records[in] = c.record(in, res, now)
		}
	}
	c.view.Records, c.view.AllAt = records, now
	return nil
}

// record is what a transaction has read of an instance; an unreadable record counts as none.
func (c *conducting) record(in registry.Instance, res results, at time.Time) conductor.Record {
	live := res.at(c.keys.live(in)) != nil
	p := res.at(c.keys.member(in))
	if p == nil {
		return conductor.Record{Live: live, At: at}
	}
	m, err := decode[registry.Member](p.Key, p.Value)
	if err != nil {
		c.log.Warn("member record is unreadable", "err", err)
		return conductor.Record{Live: live, At: at}
	}
	return conductor.Record{Member: m, Index: p.ModifyIndex, Live: live, At: at}
}

func (c *conducting) readSome(ctx context.Context, of []registry.Instance) error {
	records := maps.Clone(c.view.Records)
	if records == nil {
		records = make(map[registry.Instance]conductor.Record, len(of))
	}
	for part := range slices.Chunk(of, mostOps/2) {
		names := make([]string, 0, 2*len(part))
		for _, in := range part {
			names = append(names, c.keys.member(in), c.keys.live(in))
		}
		res, err := c.bulk.readKeys(ctx, consistent, names...)
		if err != nil {
			return err
		}
		now := time.Now()
		for _, in := range part {
			records[in] = c.record(in, res, now)
		}
	}
	c.view.Records = records
	return nil
}

func (c *conducting) readCheckpoints(ctx context.Context) error {
	found, err := storedIn(ctx, c.bulk, c.keys)
	if found == nil {
		return err
	}
	if err != nil { // an unreadable one counts as none: the gang must resume from what there is
		c.log.Warn("checkpoint records are unreadable", "err", err)
	}
	c.view.Checkpoints, c.view.CheckpointsAt = found, time.Now()
	return nil
}
