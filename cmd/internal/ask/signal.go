package ask

import (
	"context"
	"fmt"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// Signal sends a signal to the main process of an instance, which a word names.
func Signal(ctx context.Context, k apps.Lookup, word, signal string) error {
	if _, err := status.ParseSignal(signal); err != nil {
		return exit.Usagef("%w; want a name such as TERM, KILL, USR1, or a number", err)
	}
	t, err := k.Act(ctx, word, func(ctx context.Context, c *status.Client) error { return c.Signal(ctx, signal) })
	if err != nil && t.Instance != nil {
		return t.Failed("signal", fmt.Errorf("%w; muster status %s says how it stands", err, t.App))
	}
	return err
}
