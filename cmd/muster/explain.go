package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/plan/sheet"
)

func newExplain(s console.Streams) *cobra.Command {
	f := planFlags{roster: exampleRoster}
	cmd := &cobra.Command{
		Use:   "explain APP",
		Short: "Say for people what would run, component by component, and where each value comes from",
		Args:  exactly("APP"),
		Long: `Says of each component what its instances run, with which limits, ports, variables, inputs and outputs, what starts
again and what ends the job. Behind each value stands where it comes from: FILE#POINTER of the definition, an
option, a launcher's variable; what has nothing behind it is muster's default. muster plan prints the same for
programs, as JSON.`,
		Example: `  muster explain catalog:handwriting
  muster explain job.json --component worker`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.explain(cmd.Context(), s, args[0])
		},
	}
	flags := cmd.Flags()
	f.app.Register(flags)
	flags.StringVar(&f.component, "component", "", "this component only")
	flags.StringVar(&f.allocation, "allocation", "",
		"JSON `FILE` {launcher, host, ports, devices, envelope, kill_window} in place of what this environment says")
	flags.StringVar(&f.engine, "engine", "auto",
		"how the process would be confined: auto, container, cgroup or process")
	completeFlag(cmd, "component", completeComponents(&f.app, firstOf))
	return cmd
}

func (f *planFlags) explain(ctx context.Context, s console.Streams, ref string) error {
	l, found, err := f.app.Read(ctx, ref)
	if err != nil {
		return err
	}
	defer l.Close()
	if bad := exit.OfProblems(found); bad != nil {
		return bad
	}
	request, err := f.request(ctx, l)
	if err != nil {
		return err
	}
	list, err := f.list(l.App, request)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(s.Out, sheet.Of(&l.App, list.Plans, f.component)); err != nil {
		return exit.With(exit.Internal, fmt.Errorf("print: %w", err))
	}
	return nil
}
