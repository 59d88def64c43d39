package main

import (
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/run"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
)

func newRun(s console.Streams) *cobra.Command {
	f := run.Options{}
	cmd := &cobra.Command{
		Use: "run APP", Short: "Run a whole app on this machine, one agent per instance", Args: exactly("APP"),
		Example: `  muster run catalog:handwriting
  muster run catalog:handwriting --instances ps=1,worker=3 --app-id d1 --work-dir w --json
  muster run DIR --registry consul://127.0.0.1:8500`,
		ValidArgsFunction: completeApp,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.Run(cmd.Context(), s, args[0]) },
	}
	set := cmd.Flags()
	f.App.Register(set)
	f.Registry.Register(set)
	set.Lookup("registry").Usage = registry.AddressForms + " (default: one of its own, embedded in this command, whatever CONSUL_HTTP_ADDR says)"
	f.State.Register(set)
	f.Filesystem.Register(set)
	set.StringVar(&f.AppID, "app-id", "", "name of the gang (default: the app's name and six letters)")
	set.StringVar(&f.WorkDir, "work-dir", "", "folder for package, checkpoints and instances")
	set.StringVar(&f.LogDir, "log-dir", "", "folder for logs (default: log in the work folder)")
	set.StringVar(&f.Host, "host", "", "address of this machine (default with the embedded registry: 127.0.0.1)")
	set.StringVar(&f.Ports, "ports", ports.Default.String(), "range to take ports from")
	set.StringVar(&f.Engine, "engine", "auto", "how the processes are confined: auto, container, cgroup or process")
	set.BoolVar(&f.RequireLimits, "require-limits", false, "end with 77 rather than run where a limit that was asked for is not enforced")
	set.StringVar(&f.Policy, "policy", "", "what this host's operator permits and forbids (default: "+policy.DefaultFile+")")
	set.StringArrayVar(&f.Env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	set.BoolVar(&f.PAIReport, flags.PAIReport, false, flags.PAIReportUsage)
	set.BoolVar(&f.JSON, "json", false, "print the result as JSON")
	set.StringVar(&f.Output, "output", run.OutputAuto, "`HOW` stderr shows the run: table (a row per instance), lines (what the processes write), or auto: table on a terminal, lines otherwise")
	completeFlag(cmd, "output", cobra.FixedCompletions(run.Outputs(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
