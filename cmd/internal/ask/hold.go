package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// Hold has an instance, APP/INSTANCE, keep the container of its failed process for so long from now on; 0 releases it.
func Hold(ctx context.Context, k apps.Lookup, word string, keep time.Duration) error {
	if keep < 0 || keep > status.MostHold {
		return exit.Usagef("hold: got %s, want a time up to %s", keep, status.MostHold)
	}
	t, agent, err := k.Agent(ctx, word)
	if err != nil {
		return err
	}
	defer agent.Close()
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	if err := agent.Hold(ctx, keep); err != nil {
		return fmt.Errorf("hold %s/%s: %w", t.App, t.Instance, err)
	}
	return nil
}
