package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
)

func newKill(s console.Streams) *cobra.Command {
	f := flags.Ask{}
	cmd := &cobra.Command{
		Use: "kill APP | APP/INSTANCE", Short: "Stop a run at once, or kill one instance's process",
		DisableFlagsInUseLine: true, Args: exactly("APP or APP/INSTANCE"),
		Long: `kill APP is muster stop APP --grace 0s: every process is killed, checkpoints are kept, the verdict is
stopped. kill APP/INSTANCE is muster signal APP/INSTANCE KILL: the agent of the instance, on this host,
lives on and restarts the process while the budget lasts.`,
		Example:           "  muster kill d1\n  muster kill d1/worker-1",
		ValidArgsFunction: completeKnown(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[0], "/") {
				return (&signalFlags{ask: f}).signal(cmd.Context(), s, args[0], "KILL")
			}
			k, err := f.Lookup(args[0], s.Err)
			if err != nil {
				return err
			}
			return ask.Stop(cmd.Context(), s, k, args[0], ask.StopOptions{Grace: new(time.Duration)})
		},
	}
	f.Register(cmd.Flags())
	f.UI.Register(cmd.Flags())
	return cmd
}
