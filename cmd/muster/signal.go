package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

type signalFlags struct{ ask askFlags }

func newSignal(s streams) *cobra.Command {
	f := signalFlags{}
	cmd := &cobra.Command{
		Use: "signal [APP/]INSTANCE SIGNAL", Short: "Send a signal to an instance's main process on this host", Args: exactly("[APP/]INSTANCE", "SIGNAL"),
		Long: `Sends the signal to the app's main process, through the agent that holds the instance. Its agent
lives on: it judges the end of the process as any other, and restarts it while the budget lasts.`,
		Example:           "  muster signal d1/worker-1 KILL\n  muster signal worker-1 USR1",
		ValidArgsFunction: completeSignal(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.signal(cmd.Context(), s, args[0], args[1]) },
	}
	f.ask.state.register(cmd.Flags())
	return cmd
}

// mustGoOn is an error when the app is unknown here, or over.
func (k lookup) mustGoOn(ctx context.Context, app string) error {
	facts, err := k.onHost(ctx, app)
	switch {
	case err != nil:
		return err
	case facts.local == nil:
		return k.unknownApp(app, registry.Address{})
	case facts.living():
		return nil
	}
	if v := facts.verdict(); v != nil {
		return fmt.Errorf("%s is over: %s", app, v.Outcome)
	}
	return nil
}

func (f *signalFlags) signal(ctx context.Context, s streams, word, signal string) error {
	if _, err := status.ParseSignal(signal); err != nil {
		return exit.Usagef("%w; want a name such as TERM, KILL, USR1, or a number", err)
	}
	k, err := f.ask.lookup(s.err)
	if err != nil {
		return err
	}
	t, c, err := k.agent(ctx, word)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	if err := c.Signal(ctx, signal); err != nil {
		return fmt.Errorf("signal %s/%s: %w; muster status %s says how it stands", t.app, t.instance, err, t.app)
	}
	return nil
}
