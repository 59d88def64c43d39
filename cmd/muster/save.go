package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
)

type saveFlags struct {
	ask    flags.Ask
	json   bool
	noWait bool
	wait   time.Duration
}

func newSave(s console.Streams) *cobra.Command {
	f := saveFlags{}
	cmd := &cobra.Command{
		Use: "save APP", Short: "Save the outputs of a running app while it runs", Args: exactly("APP"),
		Long: `Asks the gang, through its registry, to save: every instance copies the folders of its outputs to
<place>/interResult/interResult_<yyyy_MM_dd_HH_mm_ss>/<instance>, with one time (UTC) for all. A copy
gets its name once it is complete. Each file is copied as it was at one moment; a file that is written
all the time is left out, with a warning in agent.log. Nothing is stopped, and earlier saves are kept.
A request during a save is answered by the next save.

When all have saved, it prints where the save is and how many instances took part. Ctrl-C or the end
of --wait ends this command; the save continues.`,
		Example: "  muster save d1\n  muster save d1 --json --registry consul://127.0.0.1:8500\n  muster " +
			"save d1 --no-wait",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := f.ask.Lookup(args[0], s.Err)
			if err != nil {
				return err
			}
			return ask.Save(cmd.Context(), s, k, args[0], ask.SaveOptions{JSON: f.json, NoWait: f.noWait, Wait: f.wait})
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "return once the request is made")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Minute,
		"longest wait until every instance has saved; then exit 76")
	return cmd
}
