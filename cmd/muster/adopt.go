package main

import (
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
)

func newAdopt(s console.Streams) *cobra.Command {
	f := flags.Ask{}
	cmd := &cobra.Command{
		Use: "adopt APP", Short: "Write a running app's data again into a registry that lost it", Args: exactly("APP"),
		Long: `For a registry whose data was deleted, or restored from an older copy, while the app runs: its status
says "registry lost its data". An agent of the app on this host writes the app's record, its definition, the
newest directive and the roster again; the other agents, on all hosts, follow with their own records
within seconds, and the run goes on. Call it where the newest generation runs. Where an older snapshot of
the same run was restored, an agent does this by itself.

Without it the processes run for as long as an outage may last (--lost-mass, less 30 s) and are stopped
then; nobody else starts the app meanwhile. muster stop APP ends such a run, without a verdict.`,
		Example:           "  muster adopt d1",
		ValidArgsFunction: completeKnown(&f),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := f.Lookup(args[0], s.Err)
		if err != nil {
			return err
		}
		return ask.Adopt(cmd.Context(), s, k, args[0])
	}
	f.Register(cmd.Flags())
	return cmd
}
