package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/oneline"
	"github.com/muster-agent/muster/cmd/internal/run"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/submit"
)

// appOrLine takes an APP, or the command of a line behind --.
func appOrLine(line *oneline.Line) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() == 0 && len(args) > 0 {
			line.Words = args
			return nil
		}
		if len(args) != 1 {
			return exit.Usagef("%s: got %d arguments, want APP, or a command behind --, as in muster %[1]s -n 3 -- "+
				"python train.py", cmd.Name(), len(args))
		}
		return line.Refuse(cmd.Name(), cmd.Flags())
	}
}

// launcherAndLine is appOrLine behind the name of a launcher.
func launcherAndLine(verb string, line *oneline.Line) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() == 1 && len(args) > 1 && args[1] != submit.HBoxVerb {
			line.Words = args[1:]
			return nil
		}
		if err := launcherArgs(verb)(cmd, args); err != nil {
			return err
		}
		return line.Refuse(verb, cmd.Flags())
	}
}

// runLine runs the program of a line, as the package that is made of it.
func runLine(ctx context.Context, s console.Streams, f *run.Options, line *oneline.Line) (err error) {
	app, err := line.Read("run", f.App.Instances, s.Err)
	if err != nil {
		return err
	}
	if line.Saves() {
		return line.Save(s.Err)
	}
	f.App.Instances = nil // they are the package's
	if err := f.Settle(app); err != nil {
		return err
	}
	dir, remove, err := line.Write(f.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return f.Run(ctx, s, dir)
}

// withLine has a verb read APP, or the package that is made of a line, which is gone afterwards.
func withLine(
	s console.Streams, verb string, app *flags.App, line *oneline.Line, ref string, read func(ref string) error,
) (err error) {
	if len(line.Words) == 0 {
		return read(ref)
	}
	if _, err := line.Read(verb, app.Instances, s.Err); err != nil {
		return err
	}
	if line.Saves() {
		return line.Save(s.Err)
	}
	app.Instances = nil
	dir, remove, err := line.Write(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return read(dir)
}
