package ask

import (
	"context"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// Hold has an instance, APP/INSTANCE, keep the container of its failed process for so long from now on; 0 releases it.
func Hold(ctx context.Context, k apps.Lookup, word string, keep time.Duration) error {
	if keep != 0 && keep < time.Second || keep > status.MostHold {
		return exit.Usagef("hold: got %s, want a time from 1s up to %s", keep, status.MostHold)
	}
	t, err := k.Act(ctx, word, func(ctx context.Context, c *status.Client) error { return c.Hold(ctx, keep) })
	if err != nil && t.Instance != nil {
		return t.Failed("hold", err)
	}
	return err
}
