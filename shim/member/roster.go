package member

import (
	"context"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
)

// readRoster reads a sealed roster and decodes it; text is the roster file.
func readRoster(
	ctx context.Context, held *consul.Membership, ref registry.RosterRef,
) (roster registry.Roster, text []byte, err error) {
	packed, err := held.Roster(ctx, ref)
	if err != nil {
		return registry.Roster{}, nil, err
	}
	return registry.Unpack(ref, packed)
}
