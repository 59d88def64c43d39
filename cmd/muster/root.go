package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

const long = `muster runs a distributed job as one gang: it publishes each container's host:port,
waits until all peers have done so, starts the training processes, restarts those that
fail from their checkpoint, and ends with one verdict.

Every flag may also be given as MUSTER_AGENT_<FLAG>, with _ for -.`

func newRoot(s console.Streams) *cobra.Command {
	root := &cobra.Command{
		Use: "muster", Short: "One gang, one verdict: the agent of distributed training jobs", Long: long,
		SilenceErrors: true, SilenceUsage: true, Args: noSuchVerb, SuggestionsMinimumDistance: 2,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.With(exit.Usage, flagMistake(cmd, err))
	})
	root.AddCommand(
		newRun(s), newAgent(s), newPlan(s), newExplain(s), newConvert(s), newRender(s), newSubmit(s), newValidate(s), newPs(s), newStatus(s), newLogs(s), newStop(s), newFlex(s), newSave(s),
		newSignal(s), newExec(s), newRsh(s), newCommand(s), newForget(s), newPackage(s), newSlider(s), newHBoxSubmit(s), newDoctor(s), newVersion(s), newExitCodes(),
	)
	heedEnvironment(root)
	return root
}

func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		like := cmd.SuggestionsFor(args[0])
		if len(like) > 0 {
			return exit.Usagef("no verb %q; did you mean %s? muster help lists them", args[0], strings.Join(like, " or "))
		}
		return exit.Usagef("no verb %q; muster help lists them", args[0])
	}
	return nil
}

// exactly is cobra.ExactArgs with our exit code and the names of what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return exit.Usagef("%s: got %d arguments, want %s", cmd.Name(), len(args), strings.Join(names, " "))
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
