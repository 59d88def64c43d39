package consul

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
)

// waitLimit is the client's own time-out of a blocking read: Consul adds up to wait/16 of jitter.
func waitLimit(wait time.Duration) time.Duration { return wait + wait/16 + 6*time.Second }

// blockKey waits until the index of key differs from the given one, or wait is over. An index that fell (a restored or
// a new server) starts from 0 again.
func (l *connection) blockKey(
	ctx context.Context, key string, index uint64, wait time.Duration, c consistency,
) (*api.KVPair, uint64, error) {
	var pair *api.KVPair
	next, err := l.block(ctx, "watch "+key, index, wait, c, func(q *api.QueryOptions) (meta *api.QueryMeta, err error) {
		pair, meta, err = l.api.KV().Get(key, q)
		return meta, err
	})
	return pair, next, err
}

// blockNames is blockKey for the names under a prefix.
func (l *connection) blockNames(
	ctx context.Context, prefix string, index uint64, wait time.Duration,
) ([]string, uint64, error) {
	var names []string
	next, err := l.block(ctx, "watch "+prefix, index, wait, byDefault,
		func(q *api.QueryOptions) (meta *api.QueryMeta, err error) {
			names, meta, err = l.api.KV().Keys(prefix, "", q)
			return meta, err
		})
	return names, next, err
}

func (l *connection) block(ctx context.Context, act string, index uint64, wait time.Duration, c consistency,
	read func(*api.QueryOptions) (*api.QueryMeta, error),
) (uint64, error) {
	var meta *api.QueryMeta
	err := l.within(ctx, waitLimit(wait), act, func(ctx context.Context) (err error) {
		q := c.options(ctx)
		q.WaitIndex, q.WaitTime = index, wait
		meta, err = read(q)
		return err
	})
	if err != nil {
		return index, err
	}
	if meta.LastIndex < index {
		return 0, nil
	}
	return max(meta.LastIndex, 1), nil
}
