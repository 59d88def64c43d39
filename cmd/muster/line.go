package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/oneline"
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

// withLine has a verb read APP, or the package that is made of a line, which is gone afterwards.
func withLine(
	s console.Streams, verb string, app *flags.App, line *oneline.Line, ref string, read func(ref string) error,
) error {
	inTemp := func(appdef.App) (string, error) { return os.TempDir(), nil }
	return withLineIn(s, verb, app, line, ref, inTemp, read)
}

// withLineIn is withLine with the folder in which the package is made.
func withLineIn(
	s console.Streams, verb string, flags *flags.App, line *oneline.Line, ref string,
	where func(appdef.App) (string, error), read func(ref string) error,
) (err error) {
	if len(line.Words) == 0 {
		return read(ref)
	}
	line.OtherPath = line.OtherPath || flags.Template+flags.Resources != "" ||
		slices.ContainsFunc(flags.Set, func(one string) bool { return strings.Contains(one, "env.PATH=") })
	app, err := line.Read(verb, flags.Instances, s.Err)
	if err != nil {
		return err
	}
	if line.Saves() {
		if len(flags.Set) > 0 || flags.Template+flags.Resources != "" {
			return exit.Usagef("%s: --save with --set, --template or --resources: the saved package has none of them; "+
				"give them to the verb that runs the package, or change its files", verb)
		}
		return line.Save(s.Err)
	}
	flags.Instances = nil // they are the package's
	in, err := where(app)
	if err != nil {
		return err
	}
	dir, remove, err := line.Write(in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return read(dir)
}
