package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/oneline"
	"github.com/muster-agent/muster/shim/dryrun"
	"github.com/muster-agent/muster/shim/plan/sheet"
)

func newExplain(s console.Streams) *cobra.Command {
	f := planFlags{Options: dryrun.Options{Roster: dryrun.ExampleRoster}}
	line := oneline.Line{}
	cmd := &cobra.Command{
		Use: "explain {APP | -n N -- COMMAND…}", DisableFlagsInUseLine: true,
		Short: "Print for people what would run, component by component, and the source of each value",
		Args:  appOrLine(&line),
		Long: `Prints for each component what its instances run, its limits, ports, variables, inputs and outputs,
what is restarted, and what ends the job. Each value is followed by its source: FILE#POINTER of the
definition, an option, or a launcher's variable; a value without a source is muster's default.
muster plan prints the same as JSON, for programs. Where this host would refuse an agent, by its policy
or its rights, explain ends as that agent would.`,
		Example: `  muster explain catalog:handwriting
  muster explain job.json --component worker
  muster explain -n 3 -- python train.py`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withLine(s, "explain", &f.app, &line, args[0], func(ref string) error {
				return f.explain(cmd.Context(), s, ref)
			})
		},
	}
	set := cmd.Flags()
	f.app.Register(set)
	line.Register(set)
	f.filesystem.Register(set)
	set.StringVar(&f.Component, "component", "", "show only this component")
	set.StringVar(&f.Allocation, "allocation", "", "`FILE` with an allocation as JSON (default: this environment's)")
	f.registerHost(set)
	completeFlag(cmd, "component", completeComponents(&f.app, firstOf))
	return cmd
}

func (f *planFlags) explain(ctx context.Context, s console.Streams, ref string) error {
	return f.planned(ctx, ref, func(app *appdef.App, p *dryrun.Planner) error {
		list, err := p.List(ctx)
		if err != nil {
			return err
		}
		return f.print(s, p.Hide(sheet.Of(app, list.Plans, f.Component)))
	})
}
