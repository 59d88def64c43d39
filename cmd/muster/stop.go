package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
)

type stopFlags struct {
	ask     flags.Ask
	grace   time.Duration
	save    bool
	timeout time.Duration
}

func newStop(s console.Streams) *cobra.Command {
	f := stopFlags{}
	cmd := &cobra.Command{
		Use: "stop APP", Short: "Stop a run in grace, with the verdict stopped", Args: exactly("APP"),
		Aliases: []string{"cancel"},
		Long: `Asks the gang, through its registry, to stop: every process gets its stop signal and its grace,
checkpoints are kept, the verdict is stopped. Waits until no agent of the run is left and prints the
verdict; the app may then be run again. When the registry cannot be reached, the agents on this host
are stopped directly: there is no verdict then, and the run resumes when it is launched again. With a
registry for several hosts that is not a stop of the run, and the exit code is 69.

With --save all instances first save their outputs, as with muster save, while their processes run.
They stop when all have saved or --timeout is over; when one has not saved, this exits with 1 after
the stop. Without --save, and after Ctrl-C of muster run, no save is waited for.`,
		Example: "  muster stop d1\n  muster stop d1 --grace 0s --registry consul://127.0.0.1:8500\n  " +
			"muster stop d1 --save",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			var grace *time.Duration
			if cmd.Flags().Changed("grace") {
				grace = &f.grace
			}
			if cmd.Flags().Changed("timeout") && !f.save {
				return exit.Usagef("stop: --timeout %s without --save", f.timeout)
			}
			k, err := f.ask.Lookup(args[0], s.Err)
			if err != nil {
				return err
			}
			return ask.Stop(cmd.Context(), s, k, args[0], ask.StopOptions{
				Grace: grace, Save: f.save,
				Timeout: f.timeout,
			})
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().DurationVar(&f.grace, "grace", 0, "time between the stop signal and SIGKILL (default: the app's)")
	cmd.Flags().BoolVar(&f.save, "save", false, "save the outputs first, while the processes run")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "with --save: longest time for saving, up to 24h")
	return cmd
}
