package consul

import (
	"bytes"
	"context"
	"time"

	"github.com/muster-agent/muster/registry"
)

// commonEvery is how often a conductor looks whether checkpoints were committed. The look costs some bytes.
const commonEvery = 5 * time.Second

// publishCommon keeps the key `common`, until ctx ends. It reads the checkpoints of all members when one has changed,
// at most once in commonEvery: else each of N members would read the keys of all N after each commit. The key is not in
// the directive: a write there wakes everybody.
func (c *conducting) publishCommon(ctx context.Context) {
	var seen uint64
	gen := 0
	var written []byte
	for pause(ctx, commonEvery) == nil {
		d := c.directive.directive()
		if d.Act != registry.ActRun {
			continue
		}
		index, err := c.checkpointsIndex(ctx)
		if err != nil || index == 0 || index == seen && d.Gen == gen {
			continue
		}
		stored, err := storedIn(ctx, c.bulk, c.keys)
		if err != nil {
			c.log.Debug("checkpoints not read", "err", err)
			continue
		}
		if value := encode(c.me.Facts.CommonStep(d, stored)); !bytes.Equal(value, written) {
			if _, err := c.calls.commit(ctx, c.keys.publishCommon(c.session, value)...); err != nil {
				c.log.Debug("common step not published", "err", err)
				continue
			}
			written = value
		}
		seen, gen = index, d.Gen
	}
}

// checkpointsIndex is the index of the last change below checkpoint/; 0: there is nothing. It reads the names of the
// components only.
func (c *conducting) checkpointsIndex(ctx context.Context) (index uint64, err error) {
	err = c.calls.do(ctx, "look for checkpoints", func(ctx context.Context) error {
		names, meta, err := c.calls.api.KV().Keys(c.keys.checkpoints(), "/", byDefault.options(ctx))
		if err == nil && len(names) > 0 {
			index = meta.LastIndex
		}
		return err
	})
	return index, err
}
