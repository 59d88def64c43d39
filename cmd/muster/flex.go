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
	ask  flags.Ask
	json bool
	wait time.Duration
}

func newFlex(s console.Streams) *cobra.Command {
	f := flexFlags{}
	cmd := &cobra.Command{
		Use: "flex APP COMPONENT=COUNT...", Short: "Change how many instances a running app has", Args: flexArgs,
		Long: `Asks the gang, through its registry, for other counts.

Fewer instances: those with the highest indexes stop in grace and exit with 0; the others form a new
generation without them. More instances: the gang runs on until the agents of the new indexes are
there and staged, and then forms a new generation with them. muster run launches those agents itself;
elsewhere start them as the others were started. Counts of services change without a new generation.
A new generation resumes from the last checkpoint.

Returns when the counts are in force. Ctrl-C or the end of --wait ends this command; the request
stands. The definition does not change; agents that are launched later keep to the counts in force.`,
		Example: "  muster flex d1 worker=6\n  muster flex d1 worker=2 ps=1 --registry " +
			"consul://127.0.0.1:8500 --wait 30m",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := f.ask.Lookup(s.Err)
			if err != nil {
				return err
			}
			return ask.Flex(cmd.Context(), s, k, args[0], args[1:], f.wait, f.json)
		},
	}
	f.ask.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	cmd.Flags().DurationVar(&f.wait, "wait", 5*time.Minute, "longest wait for the new counts; then exit 76")
	return cmd
}

func flexArgs(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return exit.Usagef("flex: got %d arguments, want APP and one COMPONENT=COUNT or more", len(args))
	}
	return nil
}
