package consul

import (
	"bytes"
	"context"
	"fmt"

	"github.com/muster-agent/muster/registry"
)

// smallRoster is a roster, in bytes of its file, that delays no renewal on the connection that both share.
const smallRoster = 256 << 10

// packed reads a sealed roster from the registry. Any server may answer, because the content names the key. If a server
// lacks it or has a part of it, the leader is asked.
func (c *Client) packed(ctx context.Context, k keys, ref registry.RosterRef) ([]byte, error) {
	packed, err := c.packedBy(ctx, k, ref, stale)
	if err == nil {
		return packed, nil
	}
	return c.packedBy(ctx, k, ref, byDefault)
}

func (c *Client) packedBy(ctx context.Context, k keys, ref registry.RosterRef, how consistency) ([]byte, error) {
	from := c.calls
	if ref.Bytes > smallRoster {
		from = c.bulk
	}
	var chunks [][]byte // not of the length that the reference says: anybody may have written it
	for n := range max(ref.Chunks, 1) {
		chunk, err := from.raw(ctx, k.roster(ref.ID, n), how)
		if err != nil {
			return nil, err
		}
		if chunk == nil {
			return nil, fmt.Errorf("roster %s: chunk %d of %d is not there", ref.ID, n+1, ref.Chunks)
		}
		chunks = append(chunks, chunk)
	}
	packed := bytes.Join(chunks, nil)
	return packed, ref.Verify(packed)
}
