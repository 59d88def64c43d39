package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

type signalFlags struct{ ask flags.Ask }

func newSignal(s console.Streams) *cobra.Command {
	f := signalFlags{}
	cmd := &cobra.Command{
		Use: "signal [APP/]INSTANCE SIGNAL", Short: "Send a signal to an instance's main process",
		Args: exactly("[APP/]INSTANCE", "SIGNAL"),
		Long: `Sends the signal to the app's main process, through the agent of the instance. The agent lives on: it
treats the end of the process as any other, and restarts it while the budget lasts. From another host
it takes the right to write the app's keys in its registry.`,
		Example:           "  muster signal d1/worker-1 KILL\n  muster signal worker-1 USR1",
		ValidArgsFunction: completeSignal(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.signal(cmd.Context(), s, args[0], args[1])
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	return cmd
}

func (f *signalFlags) signal(ctx context.Context, s console.Streams, word, signal string) error {
	if _, err := status.ParseSignal(signal); err != nil {
		return exit.Usagef("%w; want a name such as TERM, KILL, USR1, or a number", err)
	}
	k, err := f.ask.Lookup(word, s.Err)
	if err != nil {
		return err
	}
	t, c, err := k.Agent(ctx, word)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	if err := c.Signal(ctx, signal); err != nil {
		return fmt.Errorf("signal %s/%s: %w; muster status %s says how it stands", t.App, t.Instance, err, t.App)
	}
	return nil
}
