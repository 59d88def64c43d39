package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/dryrun"
	"github.com/muster-agent/muster/shim/exit"
)

type planFlags struct {
	dryrun.Options
	app        flags.App
	ref        string
	filesystem flags.Filesystem
	policy     flags.Policy
}

func newPlan(s console.Streams) *cobra.Command {
	f := planFlags{}
	cmd := &cobra.Command{
		Use: "plan [APP]", Short: "Print what an agent would do, as JSON, without doing it", Args: noCommand,
		Long: `Prints the plan of one instance (--component, --index), or {plans: […]}: of the first instance of each
component, with --all of every instance. Paths are printed with ${WORK}, ${LOG} and ${STATE}; ports
that are not claimed yet are 0. --allocation FILE reads what a launcher would grant from a file
instead of this environment. --roster adds the environment and files of the start. APP may also be
given by --app, as agents receive it. The field launcher is what is known of the launcher: every value
with its source, how it learns what an agent's exit means, and what survives a restart. A plan that this
host would refuse an agent, by its policy or its rights, is not printed: plan ends as that agent would.`,
		Example: `  muster plan catalog:tensorflow --component worker --index 1
  muster plan catalog:handwriting --all --roster example`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref := firstOf(args)
			if ref == "" {
				ref = f.ref
			}
			if ref == "" {
				return exit.Usagef("plan: got 0 arguments, want APP, or --app")
			}
			return f.plan(cmd.Context(), s, ref)
		},
	}
	set := cmd.Flags()
	f.app.Register(set)
	f.filesystem.Register(set)
	set.StringVar(&f.ref, "app", "", "`APP` as agents receive it")
	set.StringVar(&f.AppID, "app-id", "", "name of the gang (default: the launcher's, else -)")
	set.StringVar(&f.Host, "host", "", "address at which peers would reach this host")
	set.DurationVar(&f.KillWindow, "kill-window", 0,
		"time between the launcher's TERM and its KILL (default: the launcher's)")
	set.StringVar(&f.Component, "component", "", "plan of one component")
	set.IntVar(&f.Index, "index", 0, "index within the component")
	set.BoolVar(&f.All, "all", false, "plans of all instances")
	set.StringVar(&f.Allocation, "allocation", "", "`FILE` with an allocation as JSON (default: this environment's)")
	f.registerHost(set)
	set.StringVar(&f.Roster, "roster", "", "`FILE` with a roster as JSON, or example: print the start, too")
	completeFlag(cmd, "app", completeAppFlag)
	completeFlag(cmd, "component", completeComponents(&f.app, firstOf))
	return cmd
}

// noCommand takes at most an APP: a command alone has no package.
func noCommand(cmd *cobra.Command, args []string) error {
	if cmd.ArgsLenAtDash() == 0 {
		return exit.Usagef("plan: got a command behind --, want APP: muster explain -- COMMAND shows what would run, " +
			"and muster run --save DIR -- COMMAND writes the package that plan takes")
	}
	return atMost("APP")(cmd, args)
}

// registerHost adds the flags by which this host judges the plan, as an agent has them.
func (f *planFlags) registerHost(set flags.Set) {
	set.StringVar(&f.Engine, "engine", "auto", "confinement: auto, container, cgroup or process")
	f.policy.Register(set)
	set.StringVar(&f.WorkDir, "work-dir", "", "folder for package, checkpoints and instances")
}

func (f *planFlags) plan(ctx context.Context, s console.Streams, ref string) error {
	switch {
	case f.Index != 0 && f.Component == "":
		return exit.Usagef("plan: --index %d without --component", f.Index)
	case f.All && f.Index != 0:
		return exit.Usagef("plan: --index and --all: want one of them")
	}
	if f.AppID != "" {
		if err := appdef.CheckName("plan: --app-id", f.AppID); err != nil {
			return exit.With(exit.Usage, err)
		}
	}
	return f.planned(ctx, ref, func(_ *appdef.App, p *dryrun.Planner) error {
		if f.Component != "" && !f.All {
			one, err := p.One(ctx)
			if err != nil {
				return err
			}
			return f.print(s, p.Hide(string(one.JSON())))
		}
		list, err := p.List(ctx)
		if err != nil {
			return err
		}
		return f.print(s, p.Hide(string(list.JSON())))
	})
}

// planned opens APP and calls show with what plans it.
func (f *planFlags) planned(ctx context.Context, ref string, show func(*appdef.App, *dryrun.Planner) error) error {
	f.app.Hadoop, f.Hadoop, f.DefaultFS = f.filesystem.Hadoop.Login, f.filesystem.Hadoop.Login, f.filesystem.URI
	rules, err := f.policy.Read()
	if err != nil {
		return err
	}
	f.app.Policy, f.Policy = &rules, rules
	l, found, err := f.app.Read(ctx, ref)
	if err != nil {
		return err
	}
	defer l.Close()
	if bad := exit.OfProblems(found); bad != nil { // warnings are in the plan
		return bad
	}
	p, err := dryrun.New(ctx, l, f.Options)
	if err != nil {
		return err
	}
	return show(&l.App, p)
}

func (f *planFlags) print(s console.Streams, text string) error {
	if _, err := fmt.Fprint(s.Out, text); err != nil {
		return exit.With(exit.Internal, fmt.Errorf("print: %w", err))
	}
	return nil
}
