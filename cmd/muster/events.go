package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/logs"
	"github.com/muster-agent/muster/registry"
)

func newEvents(s console.Streams) *cobra.Command {
	var ask flags.Ask
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use: "events [APP/]INSTANCE|APP", Short: "Print what happened to instances, also after their end",
		Args: exactly("[APP/]INSTANCE or APP"),
		Long: `Prints the events of an app's instances on this host in the order of time: each change of phase, with
its cause, and each warning. -f goes on until the run ends. --json prints the lines of their
events.jsonl as they stand.`,
		Example:           "  muster events d1\n  muster events d1/worker-0 -f",
		ValidArgsFunction: completeLogs(&ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printEvents(cmd.Context(), s, &ask, args[0], logs.Events{Follow: follow, JSON: asJSON, Out: s.Out})
		},
	}
	ask.State.Register(cmd.Flags())
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing until the run ends")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one event in a line")
	return cmd
}

func printEvents(ctx context.Context, s console.Streams, ask *flags.Ask, what string, e logs.Events) error {
	k, err := ask.Lookup(what, s.Err)
	if err != nil {
		return err
	}
	t, err := k.Target(what, true)
	if err != nil {
		return err
	}
	if e.Facts, err = k.OnHost(ctx, t.App); err != nil {
		return err
	}
	if e.Facts.Local == nil {
		return k.UnknownApp(t.App, registry.Address{})
	}
	e.Lookup, e.Instance = k, t.Instance
	return e.Print(ctx)
}
