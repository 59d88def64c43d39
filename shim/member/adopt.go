package member

import (
	"context"
	"errors"
	"time"

	"github.com/muster-agent/muster/shim/status"
)

// adoptTime limits an adoption: a few requests to the registry.
const adoptTime = 10 * time.Second

// Adopt writes the app's data again into a registry that has lost it.
func (m *Member) Adopt(ctx context.Context) (status.Adopted, error) {
	membership := m.Membership()
	if membership == nil {
		return status.Adopted{}, errors.New("this agent holds no index")
	}
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	_, read := m.Roster()
	d, err := membership.Adopt(ctx, read)
	return status.Adopted{Run: d.Run, Gen: d.Gen, Act: string(d.Act)}, err
}
