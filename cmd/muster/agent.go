package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/signals"
	"github.com/muster-agent/muster/shim/wording"
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
	set.StringVar(&f.ports, "ports", "20000-29999", "range to take ports from")
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
	set.BoolVar(&f.paiReport, paiReportFlag, false, paiReportUsage)
	set.BoolVar(&f.logJSON, "log-json", false, "write the agent's own log as JSON")
	set.IntVar(&f.lifeline, "lifeline-fd", -1, "descriptor whose end means: stop in grace")
	flags.Must(set.MarkHidden("lifeline-fd"))
}

// agent is the whole life of `muster agent`.
func (f *agentFlags) agent(ctx context.Context, s console.Streams, newRun, policyNamed bool) (err error) {
	outliveReaders()
	debug.SetGCPercent(thrift)
	last, notify := "", notify.New(f.logger(s.Err), loading(f.ref, time.Now()))
	defer func() { notify.Close(cmp.Or(last, errorStatus(err))) }()
	codes, err := parseExitMap(f.exitMap)
	if err != nil {
		return err
	}
	if f.ref == "" {
		return exit.Usagef("agent: --app is missing: name a folder, an archive or catalog:NAME")
	}
	rules, err := policy.Read(f.policy, policyNamed)
	if err != nil {
		return err
	}
	f.app.Policy, f.app.Hadoop = &rules, f.filesystem.Hadoop.Login
	app, err := f.app.Load(ctx, f.ref, s.Err)
	if err != nil {
		return err
	}
	defer app.Close()
	a, err := f.prepare(ctx, s, app, notify, newRun, policyNamed)
	if err != nil {
		return err
	}
	defer a.close()
	stop := a.hearSignals(f.lifeline)
	defer stop()
	final := a.run(ctx)
	code := final.ExitCode()
	undone := a.data.undoneOutputs()
	if undone != nil && code == 0 {
		code = exit.Registry
	}
	mapped := codes.apply(code, final)
	last = lastStatus(final)
	a.notify.Ends(mapped)
	a.epilogue(final, code, mapped)
	if f.paiReport {
		a.reportPAI(s.Err, final)
	}
	if undone != nil && mapped != 0 {
		return exit.Error{Code: mapped, Err: undone}
	}
	if code != 0 && final.Cause != "" && final.Directive.Verdict == nil {
		return exit.Error{Code: mapped, Err: errors.New(final.Cause)}
	}
	if mapped == 0 {
		return nil
	}
	return exit.Silent{Code: mapped}
}

// thrift is the garbage collector's GOGC of an agent, percent: it waits for most of its life, and a host has many. Its
// live heap is below 1 MB, so that what it does costs little more for it.
const thrift = 20

// outliveReaders makes a write to a pipe that nobody reads any more an error like any other. `muster run`
// reads its agents' stderr: killed, it must not take them along by SIGPIPE before they have stopped in grace.
// A handler is reset by exec, so what we start is not concerned.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// hearSignals turns TERM, INT and the end of the lifeline into events of the machine.
func (a *agent) hearSignals(lifeline int) (stop func()) {
	heard := make(chan os.Signal, 4)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		var echo signals.Repeat
		for {
			select {
			case sig := <-heard:
				if echo.Again(sig, time.Now()) {
					continue
				}
				number, _ := sig.(syscall.Signal)
				a.loop.Tell(machine.Event{Kind: machine.Term, Signal: int(number)})
			case <-done:
				return
			}
		}
	}()
	if lifeline >= 0 {
		syscall.CloseOnExec(lifeline)
		line := os.NewFile(uintptr(lifeline), "lifeline")
		go func() {
			_, _ = line.Read(make([]byte, 1)) // only its end matters
			a.log.Warn("whoever started this agent is gone")
			a.loop.Tell(machine.Event{Kind: machine.Term, Signal: int(syscall.SIGTERM)})
		}()
	}
	return func() {
		signal.Stop(heard)
		close(done)
	}
}

// identity is who this agent is, from flags, then the launcher.
type identity struct {
	appID, run string
	instance   *registry.Instance
	component  string // of an index to be claimed; "": any
	rank       int    // Slurm's word; -1: none
	found      launcher.Found
}

func (f *agentFlags) identity(found launcher.Found, app *openapp.App) (identity, error) {
	id := identity{appID: f.appID, run: f.run, found: found, component: f.component, rank: found.Rank}
	if id.appID == "" {
		id.appID = found.AppID
	}
	if id.appID == "" {
		return id, exit.Usagef("agent: --app-id is missing: the name of the gang, the same for all its agents")
	}
	if id.run == "" {
		id.run = found.RunID
	}
	if id.run == "" {
		id.run = "1"
	}
	if err := cmp.Or(appdef.CheckName("agent: --app-id", id.appID), appdef.CheckName("agent: --run", id.run)); err != nil {
		return id, exit.With(exit.Usage, err)
	}
	index := f.index
	if id.component == "" {
		id.component = found.Component
	}
	if index < 0 {
		index = found.Index
	}
	if id.component != "" && app.Component(id.component) == nil {
		return id, exit.Usagef("agent: no component %q, want one of %s", id.component, strings.Join(app.ComponentNames(), ", "))
	}
	if id.component != "" && index >= 0 {
		id.instance = &registry.Instance{Component: id.component, Index: index}
	}
	if id.component == "" && index >= 0 {
		return id, exit.Usagef("agent: --index %d without --component", index)
	}
	return id, nil
}

// exitMap is --exit-code-map: by code or by class.
type exitMap map[string]int

func parseExitMap(text string) (exitMap, error) {
	m := exitMap{}
	if text == "" {
		return m, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(pair, "=")
		n, err := strconv.Atoi(to)
		if !ok || err != nil || n < 0 || n > 255 {
			return nil, exit.Usagef("--exit-code-map %q: want CODE=CODE or CLASS=CODE with codes 0…255", pair)
		}
		from = strings.TrimSpace(from)
		if code, err := strconv.Atoi(from); (err != nil || code < 0 || code > 255) && !slices.Contains(classes(), registry.Class(from)) {
			return nil, exit.Usagef("--exit-code-map %q: got %q, want a code 0…255 or a class: %s", pair, from, wording.Joined(classes()))
		}
		m[from] = n
	}
	return m, nil
}

// classes are those that a verdict or an agent's end may have.
func classes() []registry.Class {
	return []registry.Class{
		registry.ClassApp, registry.ClassOOM, registry.ClassGPU, registry.ClassHost, registry.ClassNetwork, registry.ClassData,
		registry.ClassImage, registry.ClassPreempted, registry.ClassStopped, registry.ClassTimeout, registry.ClassDefinition,
		registry.ClassNotPermitted, registry.ClassMuster, registry.ClassLauncher,
	}
}

func (m exitMap) apply(code int, final machine.State) int {
	class := string(final.Class)
	if v := final.Directive.Verdict; v != nil {
		class = string(v.Class)
	}
	if to, ok := m[strconv.Itoa(code)]; ok {
		return to
	}
	if to, ok := m[class]; ok && class != "" {
		return to
	}
	return code
}
