package consul

import (
	"context"
	"errors"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// storedIn reads the checkpoints that all instances have committed. Where keys are unreadable it returns the others
// with the error; nil: none were read.
func storedIn(ctx context.Context, by *connection, k keys) (map[registry.Instance]registry.Checkpoint, error) {
	pairs, err := by.list(ctx, k.checkpoints(), consistent)
	if err != nil {
		return nil, err
	}
	all := make(map[registry.Instance]registry.Checkpoint, len(pairs))
	var unreadable []error
	for _, p := range pairs {
		in, ok := instanceAt(k.checkpoints(), p.Key)
		if !ok {
			continue
		}
		c, err := readCheckpoint(p)
		if err != nil {
			unreadable = append(unreadable, err)
			continue
		}
		all[in] = c
	}
	return all, errors.Join(unreadable...)
}

func readCheckpoint(pair *api.KVPair) (registry.Checkpoint, error) {
	return decode[registry.Checkpoint](pair.Key, pair.Value)
}
