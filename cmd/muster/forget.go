package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

type forgetFlags struct {
	ask   flags.Ask
	older string
	force bool
}

func newForget(s console.Streams) *cobra.Command {
	f := forgetFlags{}
	cmd := &cobra.Command{
		Use:   "forget APP | --older-than AGE",
		Short: "Remove the records of finished runs from the registry and this host",
		Args:  atMost("APP"),
		Long: `Removes the app's keys from its registry and its state files from this host. Logs, work folders and
checkpoints are never removed. Refused (75) while an agent of the app is alive. --older-than takes
all apps of this host, and those of --registry, that were last changed before that age.`,
		Example:           "  muster forget d1\n  muster forget --older-than 7d --registry consul://127.0.0.1:8500",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.forget(cmd.Context(), s, args) },
	}
	f.ask.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.older, "older-than", "",
		"forget every app that ended before this `AGE`, such as 90m, 36h or 7d")
	cmd.Flags().BoolVar(&f.force, "force", false, "also if the app's registry does not answer any more")
	return cmd
}

func (f *forgetFlags) forget(ctx context.Context, s console.Streams, args []string) error {
	k, err := f.ask.Lookup(strings.Join(args, ""), s.Err)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && f.older != "":
		return exit.Usagef("forget: got APP and --older-than, want one of them")
	case f.force && f.older != "":
		return exit.Usagef("forget: got --force and --older-than, want APP with --force")
	case len(args) == 1:
		forget := k.Forget
		if f.force {
			forget = k.ForgetHere
		}
		if err := forget(ctx, args[0]); err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%s: forgotten\n", args[0])
		return nil
	case f.older == "":
		return exit.Usagef("forget: want APP, or --older-than AGE")
	}
	age, err := parseAge(f.older)
	if err != nil {
		return err
	}
	gone, err := k.ForgetOlder(ctx, age, time.Now())
	for _, app := range gone {
		fmt.Fprintf(s.Out, "%s: forgotten\n", app)
	}
	return err
}

// parseAge reads --older-than.
func parseAge(text string) (time.Duration, error) {
	age, ok := wording.ParseAge(text)
	if !ok {
		return 0, exit.Usagef("--older-than %q: want an age such as 90m, 36h or 7d", text)
	}
	return age, nil
}
