package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
)

// agentFlags are the settings of one agent.
type agentFlags struct {
	app        flags.App
	ref        string
	appID      string
	run        string
	component  string
	index      int
	host       string
	ports      string
	engine     string
	launcher   string
	workDir    string
	logDir     string
	env        []string
	exitMap    string
	kill       time.Duration
	policy     string
	api        string
	strict     bool
	lifeline   int
	registry   flags.Registry
	filesystem flags.Filesystem
	state      flags.State
	logJSON    bool
	paiReport  bool
}

func newAgent(s console.Streams) *cobra.Command {
	f := agentFlags{}
	cmd := &cobra.Command{
		Use: "agent --app APP", Short: "Be one container's entrypoint: join the gang, run the process, end with the verdict",
		Args: exactly(),
		Example: `  muster agent --app DIR --app-id d1 --component worker --index 0 --registry consul://127.0.0.1:8500
  muster agent --app catalog:handwriting --app-id d1          # claims a free index`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.agent(cmd.Context(), s, cmd.Flags().Changed("run"), cmd.Flags().Changed("policy"))
		},
	}
	f.register(cmd.Flags())
	completeFlag(cmd, "app", completeAppFlag)
	completeFlag(cmd, "component", completeComponents(&f.app, func([]string) string { return f.ref }))
	return cmd
}

func (f *agentFlags) register(set flags.Set) {
	f.app.Register(set)
	f.registry.Register(set)
	f.state.Register(set)
	f.filesystem.Register(set)
	set.StringVar(&f.ref, "app", "", "`APP`: folder, .zip, .tar.gz, .tgz, .tar.zst, a URL (file:, hdfs:, http:, https:, with #sha256=HEX at its end) or catalog:NAME")
	set.StringVar(&f.appID, "app-id", "", "name of the gang in the registry")
	set.StringVar(&f.run, "run", "", "one life of the app; a new one follows a finished one")
	set.StringVar(&f.component, "component", "", "component of this container; without it a free one is claimed")
	set.IntVar(&f.index, "index", -1, "index of this container; without it a free one is claimed")
	set.StringVar(&f.host, "host", "", "address that peers reach this host at")
	set.StringVar(&f.ports, "ports", ports.Default.String(), "range to take ports from")
	set.StringVar(&f.engine, "engine", "auto", "how the process is confined: auto, container, cgroup or process")
	set.BoolVar(&f.strict, "require-limits", false, "end with 77 rather than run where a limit that was asked for is not enforced")
	set.StringVar(&f.api, "api-listen", "", "`HOST:PORT` to answer other hosts at, to whom has the run's token (default: a port of --ports, unless this host's address is a loopback one)")
	set.StringVar(&f.policy, "policy", policy.DefaultFile, "what this host's operator permits and forbids")
	set.StringVar(&f.launcher, "launcher", "", "what started this agent, when it is not recognised")
	set.StringVar(&f.workDir, "work-dir", "", "folder for package, checkpoints and instances")
	set.StringVar(&f.logDir, "log-dir", "", "folder for logs")
	set.StringArrayVar(&f.env, "env", nil, "NAME[=VALUE] for the process; repeatable")
	set.StringVar(&f.exitMap, "exit-code-map", "", "`CODE|CLASS=CODE,…`, applied last")
	set.DurationVar(&f.kill, "kill-window", 0, "time between the launcher's TERM and its KILL (default: the launcher's usual)")
	set.BoolVar(&f.paiReport, flags.PAIReport, false, flags.PAIReportUsage)
	set.BoolVar(&f.logJSON, "log-json", false, "write the agent's own log as JSON")
	set.IntVar(&f.lifeline, "lifeline-fd", -1, "descriptor whose end means: stop in grace")
	flags.Must(set.MarkHidden("lifeline-fd"))
}

// agent is the whole life of `muster agent`.
func (f *agentFlags) agent(ctx context.Context, s console.Streams, newRun, policyNamed bool) error {
	outliveReaders()
	debug.SetGCPercent(thrift)
	options, err := f.options(s, newRun, policyNamed)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	options.Signals = signals
	code, err := shim.Run(ctx, options)
	switch {
	case err != nil:
		return exit.Error{Code: code, Err: err}
	case code != 0:
		return exit.Silent{Code: code}
	}
	return nil
}

// options are what the flags say.
func (f *agentFlags) options(s console.Streams, newRun, policyNamed bool) (o shim.Options, err error) {
	if f.ref == "" {
		return o, exit.Usagef("agent: --app is missing: name a folder, an archive or catalog:NAME")
	}
	o = shim.Options{
		App: f.ref, Open: f.app.Choices, Launcher: f.launcher, Host: f.host, API: f.api, KillWindow: f.kill, Env: f.env,
		Name:   shim.Name{AppID: f.appID, Run: f.run, NewRun: newRun, Component: f.component, Index: f.index},
		Engine: f.engine, RequireLimits: f.strict, DefaultFS: f.filesystem.URI, Hadoop: f.filesystem.Hadoop.Login,
		Folders: shim.Folders{Work: f.workDir, Log: f.logDir, State: f.state.Resolve()},
		Output:  shim.Output{To: s.Err, JSON: f.logJSON, PAIReport: f.paiReport},
	}
	if o.ExitCodes, err = exit.ParseMap(f.exitMap); err != nil {
		return o, err
	}
	if o.Policy, err = policy.Read(f.policy, policyNamed); err != nil {
		return o, err
	}
	if o.Ports, err = flags.Ports(f.ports); err != nil {
		return o, err
	}
	if o.Registry.Address, err = f.registry.Resolve(); err != nil {
		return o, err
	}
	if o.Registry.Times, err = f.registry.Times(); err != nil {
		return o, err
	}
	if f.lifeline >= 0 {
		syscall.CloseOnExec(f.lifeline)
		if err := syscall.SetNonblock(f.lifeline, true); err != nil { // so that closing it ends a read
			return o, exit.Usagef("--lifeline-fd %d: %w", f.lifeline, err)
		}
		o.Lifeline = os.NewFile(uintptr(f.lifeline), "lifeline")
	}
	return o, nil
}

// thrift is the garbage collector's GOGC of an agent, percent: it waits for most of its life, and a host has many. Its
// live heap is below 1 MB, so that what it does costs little more for it.
const thrift = 20

// outliveReaders makes a write to a pipe that nobody reads any more an error like any other. `muster run`
// reads its agents' stderr: killed, it must not take them along by SIGPIPE before they have stopped in grace.
// A handler is reset by exec, so what we start is not concerned.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
