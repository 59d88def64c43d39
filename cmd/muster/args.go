package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
)

// exactly is cobra.ExactArgs with our exit code and the names of what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return exit.Usagef("%s: got %d arguments, want %s", cmd.Name(), len(args),
				cmp.Or(strings.Join(names, " "), "flags alone: "+cmd.Name()+" --help lists them"))
		}
		return nil
	}
}

// atLeastOne takes one argument or more.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exit.Usagef("%s: got no argument, want %s", cmd.Name(), name)
		}
		return nil
	}
}

// atMost takes up to that many arguments.
func atMost(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return exit.Usagef("%s: got %d arguments, want at most %s", cmd.Name(), len(args), strings.Join(names, " "))
		}
		return nil
	}
}

// fromEnvironment fills flags that were not given from MUSTER_AGENT_<FLAG>.
func fromEnvironment(cmd *cobra.Command) error {
	settings := os.Environ()
	slices.Sort(settings) // of several mistakes the same one is told each time
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		flag, ours := strings.CutPrefix(name, "MUSTER_AGENT_")
		if !ours || flag != strings.ToUpper(flag) || strings.Contains(flag, "-") {
			continue
		}
		f := cmd.Flags().Lookup(strings.ToLower(strings.ReplaceAll(flag, "_", "-")))
		if f == nil || f.Changed {
			continue
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			return exit.Usagef("%s: %w", name, flagMistake(cmd, err))
		}
	}
	return nil
}

// flagMistake adds what would do in place of what was typed.
func flagMistake(cmd *cobra.Command, err error) error {
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok && value.GetFlag().Value.Type() == "duration" {
		return fmt.Errorf("%w; want such as 2h or 30m", err)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near, ok := appdef.Nearest(unknown.GetSpecifiedName(), names); ok {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	return err
}
