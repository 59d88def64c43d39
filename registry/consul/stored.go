package consul

import (
	"context"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// storedIn reads the checkpoints that all instances have committed.
func storedIn(
	ctx context.Context, by *connection, k keys,
) (map[registry.Instance]registry.Checkpoint, error) {
	pairs, err := by.list(ctx, k.checkpoints(), consistent)
	if err != nil {
		return nil, err
	}
	all := make(map[registry.Instance]registry.Checkpoint, len(pairs))
	for _, p := range pairs {
		in, ok := instanceAt(k.checkpoints(), p.Key)
		if !ok {
			continue
		}
		if all[in], err = readCheckpoint(p); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readCheckpoint(pair *api.KVPair) (registry.Checkpoint, error) {
	return decode[registry.Checkpoint](pair.Key, pair.Value)
}
