package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

type holdFlags struct {
	ask     flags.Ask
	keep    time.Duration
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
		RunE:              func(cmd *cobra.Command, args []string) error { return f.hold(cmd.Context(), s, args[0]) },
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().DurationVar(&f.keep, "for", 0, "keep it for `TIME` from now on")
	cmd.Flags().BoolVar(&f.release, "release", false, "keep it no more")
	return cmd
}

func (f *holdFlags) hold(ctx context.Context, s console.Streams, word string) error {
	if f.release == (f.keep != 0) {
		return exit.Usagef("hold: want --for TIME, such as --for 2h, or --release")
	}
	k, err := f.ask.Lookup(word, s.Err)
	if err != nil {
		return err
	}
	if err := ask.Hold(ctx, k, word, f.keep); err != nil {
		return err
	}
	if f.release {
		return console.Print(s.Out, word+": released\n")
	}
	return console.Print(s.Out, fmt.Sprintf("%s: held until %s\n", word, wording.Clock(time.Now().Add(f.keep))))
}
