package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
)

type flexFlags struct {
	ask flags.Ask
	ask.FlexOptions
}

func newFlex(s console.Streams) *cobra.Command {
	f := flexFlags{}
	cmd := &cobra.Command{
		Use: "flex APP COMPONENT=COUNT...", Short: "Change how many instances a running app has", Args: flexArgs,
		Aliases: []string{"scale"},
		Long: `Asks the gang, through its registry, for other counts.

Fewer instances: those with the highest indexes stop in grace and exit with 0. More instances: the
gang runs on until the agents of the new indexes are there and staged. muster run launches those
agents itself; elsewhere start them as the others were started.

Who else restarts: nobody, for services and where no process is told who the others are (no
framework, muster.restart=instance). Elsewhere all start again in a new generation, from the last
checkpoint. --explain says so beforehand.

Returns when the counts are in force. Ctrl-C or the end of --wait ends this command; the request
stands while agents of the run live. The definition does not change; agents that are launched later
keep to the counts in force.`,
		Example: "  muster flex d1 worker=6\n  muster flex d1 worker=2 ps=1 --registry " +
			"consul://127.0.0.1:8500 --wait 30m",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := f.ask.Lookup(args[0], s.Err)
			if err != nil {
				return err
			}
			return ask.Flex(cmd.Context(), s, k, args[0], args[1:], f.FlexOptions)
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.Explain, "explain", false, "only print what would stop, start and restart")
	cmd.Flags().BoolVar(&f.JSON, "json", false, "print as JSON")
	cmd.Flags().DurationVar(&f.Patience, "wait", 5*time.Minute, "longest wait for the new counts; then exit 76")
	return cmd
}

func flexArgs(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return exit.Usagef("flex: got %d arguments, want APP and one COMPONENT=COUNT or more", len(args))
	}
	return nil
}
