package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
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
	k, err := f.ask.Lookup(word, s.Err)
	if err != nil {
		return err
	}
	return ask.Signal(ctx, k, word, signal)
}
