package consul

import (
	"context"
	"errors"
	"math"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// probeKey does not exist: looking at it and failing to change it shows what is permitted, and changes nothing.
const probeKey = root + "doctor"

// OpenToAll asks a registry without a token whether whoever reaches it may read and write the keys of all apps.
func OpenToAll(ctx context.Context, at registry.Address) (read, write bool, err error) {
	l, err := connect(at, &token{})
	if err != nil {
		return false, false, err
	}
	defer l.close()
	if read, err = permits(l.do(ctx, "read a key without a token", func(ctx context.Context) error {
		_, _, err := l.api.KV().Get(probeKey, byDefault.options(ctx))
		return err
	})); err != nil {
		return false, false, err
	}
	write, err = permits(l.do(ctx, "write a key without a token", func(ctx context.Context) error {
		// No key has this index, so that a registry which would write compares and does not.
		_, _, err := l.api.KV().CAS(&api.KVPair{Key: probeKey, ModifyIndex: math.MaxInt64},
			(&api.WriteOptions{}).WithContext(ctx))
		return err
	}))
	return read, write, err
}

func permits(err error) (bool, error) {
	if errors.Is(err, registry.ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}
