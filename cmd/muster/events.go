package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/logs"
)

func newEvents(s console.Streams) *cobra.Command {
	var ask flags.Ask
	var e logs.Events
	cmd := &cobra.Command{
		Use: "events [APP/]INSTANCE|APP", Short: "Print what happened to instances, also after their end",
		Args: exactly("[APP/]INSTANCE or APP"),
		Long: `Prints the events of an app's instances in the order of time: each change of phase, with its cause, each
warning, and complete checkpoints. Agents on other hosts are asked while they live. -f goes on until
the run ends. --json prints the lines of their events.jsonl as they stand.

--summary prints which generations there were and why each began, and where the time of all instances
went: productive is what was kept, lost is what was done again after a restart.`,
		Example:           "  muster events d1\n  muster events d1/worker-0 -f\n  muster events d1 --summary",
		ValidArgsFunction: completeLogs(&ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printEvents(cmd.Context(), s, &ask, args[0], &e)
		},
	}
	ask.Register(cmd.Flags())
	ask.UI.Register(cmd.Flags())
	ask.History.Register(cmd.Flags())
	ask.History.RegisterRun(cmd.Flags())
	cmd.Flags().BoolVarP(&e.Follow, "follow", "f", false, "keep printing until the run ends")
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON, one event in a line")
	cmd.Flags().BoolVar(&e.Summary, "summary", false, "print generations, and where the time went")
	return cmd
}

func printEvents(ctx context.Context, s console.Streams, ask *flags.Ask, what string, e *logs.Events) error {
	k, err := ask.Lookup(what, s.Err)
	if err != nil {
		return err
	}
	e.Lookup, e.Out = k, s.Out
	if e.Target, err = k.Target(what, true); err != nil {
		return err
	}
	return e.Print(ctx)
}
