package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

type holdFlags struct {
	ask     flags.Ask
	keep    string
	release bool
}

func newHold(s console.Streams) *cobra.Command {
	f := holdFlags{}
	cmd := &cobra.Command{
		Use:   "hold [APP/]INSTANCE --for TIME|--release",
		Short: "Keep the container of a failed process longer, or no more",
		Args:  exactly("[APP/]INSTANCE"),
		Long: `With muster.hold in the definition, the container of a process that fails stays for that time, with its
limits, mounts, GPUs and ports: muster exec runs programs in it. This sets the time anew, counted
from now, or releases the container; what would have followed the failure follows then. muster stop
ends it too. From another host it takes the right to write the app's keys in its registry.`,
		Example:           "  muster hold d1/worker-0 --for 2h\n  muster hold worker-0 --release",
		ValidArgsFunction: completeInstance(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.hold(cmd.Context(), s, cmd.Flags().Changed("for"), args[0])
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.keep, "for", "", "keep it for `TIME` from now on, such as 90s, 5m or 2d")
	cmd.Flags().BoolVar(&f.release, "release", false, "keep it no more")
	return cmd
}

func (f *holdFlags) hold(ctx context.Context, s console.Streams, timed bool, word string) error {
	keep, err := f.time(timed)
	if err != nil {
		return err
	}
	k, err := f.ask.Lookup(word, s.Err)
	if err != nil {
		return err
	}
	if err := ask.Hold(ctx, k, word, keep); err != nil {
		return err
	}
	if f.release {
		return console.Print(s.Out, word+": released\n")
	}
	return console.Print(s.Out, fmt.Sprintf("%s: held until %s\n", word, wording.ClockUTC(time.Now().Add(keep))))
}

// time is how long the container is kept from now on; 0: it is released.
func (f *holdFlags) time(timed bool) (time.Duration, error) {
	switch {
	case timed && f.release:
		return 0, exit.Usagef("hold: want one of --for and --release")
	case f.release:
		return 0, nil
	case !timed:
		return 0, exit.Usagef("hold: want --for TIME, such as --for 2h, or --release")
	}
	keep, err := appdef.ParseDuration(f.keep)
	switch {
	case err != nil:
		return 0, exit.Usagef("hold: --for: %w", err)
	case keep == 0:
		return 0, exit.Usagef("hold: --for %s: want a time from 1s up to %s; --release keeps the container no more",
			f.keep, status.MostHold)
	}
	return keep.Duration(), nil
}
