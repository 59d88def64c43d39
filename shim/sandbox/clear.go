package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// Clear removes what a killed agent has left of its boundary; processes inside are killed. Only a container's folder
// and a cgroup of muster are touched. The caller has proved that the agent is dead.
func Clear(ctx context.Context, r Remains) error {
	var errs []error
	for _, dir := range r.Dirs {
		errs = append(errs, container.Clear(ctx, dir))
	}
	if len(r.Cgroups) > 0 {
		errs = append(errs, cgroup.RemoveAt(ctx, r.Cgroups, r.Inodes))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clear what a killed agent left: %w", err)
	}
	return nil
}
