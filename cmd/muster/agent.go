package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/ports"
)

// agentFlags are the settings of one agent. Those that need no translation are set in options at once.
type agentFlags struct {
	options    shim.Options
	app        flags.App
	registry   flags.Registry
	filesystem flags.Filesystem
	state      flags.State
	ports      string
	exitMap    string
	policy     flags.Policy
	tee        bool
	lifeline   int
}

func newAgent(s console.Streams) *cobra.Command {
	f := agentFlags{}
	cmd := &cobra.Command{
		Use:   "agent --app APP",
		Short: "Be one container's entrypoint: join the gang, run the process, end with the verdict",
		Args:  exactly(),
		Example: `  muster agent --app DIR --app-id d1 --component worker --index 0 \
      --registry consul://127.0.0.1:8500
  muster agent --app catalog:handwriting --app-id d1   # claims a free index`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("tee") {
				f.options.Output.Tee = &f.tee
			}
			return f.agent(cmd.Context(), s, cmd.Flags().Changed("run"))
		},
	}
	f.register(cmd.Flags())
	completeFlag(cmd, "app", completeAppFlag)
	completeFlag(cmd, "component", completeComponents(&f.app, func([]string) string { return f.options.App }))
	return cmd
}

func (f *agentFlags) register(set flags.Set) {
	f.app.Register(set)
	f.registry.Register(set)
	f.state.Register(set)
	f.filesystem.Register(set)
	o := &f.options
	set.StringVar(&o.App, "app", "", "`APP`: a folder, an archive, its URL, a job file of PAI or catalog:NAME")
	set.StringVar(&o.Name.AppID, "app-id", "", "name of the gang in the registry")
	set.StringVar(&o.Name.Run, "run", "", "name of this run; a new name starts a new run after a finished one")
	set.StringVar(&o.Name.Component, "component", "", "component of this container (default: claim a free instance)")
	set.IntVar(&o.Name.Index, "index", -1, "index of this container (default: claim a free instance)")
	set.StringVar(&o.Host, "host", "", "address at which peers reach this host")
	set.StringVar(&f.ports, "ports", ports.Default.String(), "range to take ports from")
	set.StringVar(&o.Engine, "engine", "auto", "confinement: auto, container, cgroup or process")
	set.BoolVar(&o.RequireLimits, "require-limits", false, flags.RequireLimitsUsage)
	set.StringVar(&o.API, "api-listen", "", "`HOST:PORT` for requests from peer agents (default: a port of --ports)")
	f.policy.Register(set)
	f.policy.RegisterHistory(set)
	set.StringVar(&o.Launcher, "launcher", "", "launcher of this agent, if it cannot be recognised")
	set.StringVar(&o.Folders.Work, "work-dir", "", "folder for package, checkpoints and instances")
	set.StringVar(&o.Folders.Log, "log-dir", "", "folder for logs")
	set.StringArrayVar(&o.Env, "env", nil, "NAME[=VALUE] for the process; repeatable")
	set.StringVar(&f.exitMap, "exit-code-map", "", "`CODE|CLASS=CODE,…`: exit codes to replace, applied last")
	set.DurationVar(&o.KillWindow, "kill-window", 0,
		"time between the launcher's TERM and its KILL (default: the launcher's)")
	set.BoolVar(&o.Output.PAIReport, flags.PAIReport, false, flags.PAIReportUsage)
	set.BoolVar(&o.Output.JSON, "log-json", false, "write the agent's own log as JSON")
	set.BoolVar(&f.tee, "tee", false, "copy the process's output to stdout, stderr (default: if they are kept)")
	set.IntVar(&f.lifeline, "lifeline-fd", -1, "descriptor whose end means: stop in grace")
	flags.Must(set.MarkHidden("lifeline-fd"))
}

// agent is the whole life of `muster agent`.
func (f *agentFlags) agent(ctx context.Context, s console.Streams, newRun bool) error {
	outliveReaders()
	debug.SetGCPercent(thrift)
	if err := f.resolve(); err != nil {
		return err
	}
	f.options.Build = ownVersion()
	f.options.Name.NewRun = newRun
	o := &f.options.Output
	o.To, o.Stdout, o.Stderr = s.Err, console.Raw(s.Out), console.Raw(s.Err)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	f.options.Signals = signals
	code, err := shim.Run(ctx, f.options)
	switch {
	case err != nil:
		return exit.Error{Code: code, Err: err}
	case code != 0:
		return exit.Silent{Code: code}
	}
	return nil
}

// resolve translates the flags that are not options as they stand.
func (f *agentFlags) resolve() (err error) {
	o := &f.options
	if o.App == "" {
		return exit.Usagef("agent: --app is missing: name a folder, an archive, a job file or catalog:NAME")
	}
	o.Open, o.Folders.State = f.app.Choices, f.state.Resolve()
	o.DefaultFS, o.Hadoop = f.filesystem.URI, f.filesystem.Hadoop.Login
	if o.ExitCodes, err = exit.ParseMap(f.exitMap); err != nil {
		return err
	}
	if o.Policy, err = f.policy.Read(); err != nil {
		return err
	}
	if o.Ports, err = flags.Ports(f.ports); err != nil {
		return err
	}
	if o.Registry.Address, err = f.registry.Resolve(); err != nil {
		return err
	}
	if o.Registry.Times, err = f.registry.Times(); err != nil {
		return err
	}
	if f.lifeline >= 0 {
		syscall.CloseOnExec(f.lifeline)
		if err := syscall.SetNonblock(f.lifeline, true); err != nil { // so that closing it ends a read
			return exit.Usagef("--lifeline-fd %d: %w", f.lifeline, err)
		}
		o.Lifeline = os.NewFile(uintptr(f.lifeline), "lifeline")
	}
	return nil
}

// thrift is the garbage collector's GOGC of an agent, percent: it waits for most of its life, and a host has many. Its
// live heap is below 1 MB, so that what it does costs little more for it.
const thrift = 20

// outliveReaders makes a write to a pipe that nobody reads any more an error like any other. `muster run`
// reads its agents' stderr: killed, it must not take them along by SIGPIPE before they have stopped in grace.
// A handler is reset by exec, so what we start is not concerned.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
