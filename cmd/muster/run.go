package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/oneline"
	"github.com/muster-agent/muster/cmd/internal/run"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/prepare"
)

func newRun(s console.Streams) *cobra.Command {
	f := run.Options{}
	line := oneline.Line{}
	detached, page := false, false
	cmd := &cobra.Command{
		Use: "run {APP | -n N -- COMMAND…}", Short: "Run a whole app on this machine, one agent per instance",
		DisableFlagsInUseLine: true, Args: appOrLine(&line),
		Long: `Runs a whole app on this machine, one agent per instance, until there is a verdict. APP is a folder, an
archive (.zip, .tar.gz, .tgz, .tar.zst), the URL of an archive, a job file of PAI (- is stdin), or
catalog:NAME. Behind -- stands a program in place of an APP: -n says how many processes, the framework
is guessed from what the program imports, and the files that the command names are brought with the
modules of their own that they import. Frameworks: horovod (over gloo), jax, lightgbm, mpi, mxnet, none,
pytorch, tensorflow, xgboost.

Ctrl-C ends the run with the verdict stopped; a second one kills. TERM interrupts it: the same command
with the same --app-id and --registry resumes it.`,
		Example: `  muster run -n 3 -- python train.py --epochs 5
  muster run --framework tensorflow -n ps=1,worker=3 --dir . -- python train.py
  muster run catalog:handwriting
  muster run catalog:handwriting --instances ps=1,worker=3 --json
  muster run DIR --registry consul://127.0.0.1:8500
  muster run DIR --app-id d1 --detach`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if page && detached {
				return exit.Usagef("run: --ui serves a page until this command ends, and --detach ends it at once")
			}
			ctx := cmd.Context()
			if page {
				f.Page = func(tell func(string)) (func(), error) { return servePage(ctx, f.State.Resolve(), tell) }
			}
			if detached {
				f.Detach = detachedArgs(cmd, args)
			}
			line.OtherPath = slices.ContainsFunc(f.Env, func(one string) bool {
				return strings.HasPrefix(one, "PATH=")
			})
			if err := whatIsSeen(ctx, &line, &f); err != nil {
				return err
			}
			inWork := func(app appdef.App) (string, error) { err := f.Settle(app); return f.WorkDir, err }
			return withLineIn(s, "run", &f.App, &line, args[0], inWork, func(ref string) error {
				return f.Run(ctx, s, ref)
			})
		},
	}
	set := cmd.Flags()
	f.App.Register(set)
	line.Register(set)
	f.Registry.Register(set)
	set.Lookup("registry").Usage = registry.AddressForms + " (default: embedded)"
	f.State.Register(set)
	f.Filesystem.Register(set)
	set.StringVar(&f.AppID, "app-id", "", "name of the gang (default: the app's name and six letters)")
	set.StringVar(&f.WorkDir, "work-dir", "", "folder for package, checkpoints and instances")
	set.BoolVar(&f.Fresh, "fresh", false, "set the checkpoints of earlier runs in the work folder aside")
	set.StringVar(&f.LogDir, "log-dir", "", "folder for logs (default: log in the work folder)")
	set.StringVar(&f.Host, "host", "", "address of this machine (default: 127.0.0.1 without --registry)")
	set.StringVar(&f.Ports, "ports", ports.Default.String(), "range to take ports from")
	set.StringVar(&f.Engine, "engine", "auto", "confinement: auto, container, cgroup or process")
	set.BoolVar(&f.RequireLimits, "require-limits", false, flags.RequireLimitsUsage)
	f.Policy.Register(set)
	f.Policy.RegisterHistory(set)
	set.StringArrayVar(&f.Env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	set.BoolVar(&f.PAIReport, flags.PAIReport, false, flags.PAIReportUsage)
	set.BoolVar(&f.JSON, "json", false, "print the result as JSON")
	set.StringVar(&f.Output, "output", run.OutputAuto,
		"`HOW` stderr shows the run: table, lines, events, or auto (table on a terminal)")
	set.BoolVar(&detached, detachFlag, false, "run in the background; return when all instances are installed")
	set.BoolVar(&page, "ui", false, "serve a page that shows the run in a browser, and print its link (muster ui)")
	completeFlag(cmd, "output", cobra.FixedCompletions(run.Outputs(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// whatIsSeen tells a line what its processes see of this machine, by the engine and the policy that agents here have.
func whatIsSeen(ctx context.Context, line *oneline.Line, f *run.Options) error {
	if len(line.Words) == 0 {
		return nil
	}
	choice, err := prepare.ChooseEngine(ctx, f.Engine, new(appdef.App))
	if err != nil {
		return err
	}
	line.Container = choice.Engine.Name() == "container"
	line.HostRoot = !line.Container
	rules, err := f.Policy.Read()
	for _, m := range rules.Mounts {
		if m.To == "" || m.To == m.Path {
			line.Seen = append(line.Seen, m.Path)
		}
	}
	return err
}

const detachFlag = "detach"

// detachedArgs are the arguments of the same `muster run` without --detach, those that come from variables among them.
func detachedArgs(cmd *cobra.Command, of []string) []string {
	args := []string{"run"}
	if !cmd.Flags().Changed("output") {
		args = append(args, "--output="+run.OutputEvents)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Name != detachFlag {
				args = append(args, "--"+f.Name+"="+value)
			}
		}
	})
	if cmd.ArgsLenAtDash() == 0 {
		args = append(args, "--")
	}
	return append(args, of...)
}
