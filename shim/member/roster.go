package member

import (
	"context"
	"fmt"

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

// GiveRoster answers a peer of that rank with the packed roster, or with the address of the peer to ask instead.
func (m *Member) GiveRoster(ctx context.Context, id string, rank int) (packed []byte, next string, err error) {
	held := m.Membership()
	if held == nil {
		return nil, "", fmt.Errorf("no index yet: %w", registry.ErrNotYet)
	}
	return held.GiveRoster(ctx, id, rank)
}
