package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/hboxjob"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/render"
	"github.com/muster-agent/muster/shim/submit"
)

// jobFlags say what a job is that a launcher is to run: those of render, submit and hbox-submit.
type jobFlags struct {
	app        flags.App
	registry   flags.Registry
	filesystem flags.Filesystem
	file       render.Options
	agent      jobAgentFlags
	strict     bool
	confDir    string // of the administrator's file of HBox
}

// jobAgentFlags are flags of the agents that a job file hands on as they are.
type jobAgentFlags struct {
	engine, ports, workDir, logDir string
	policy                         flags.Policy // of the hosts
	env                            []string
	requireLimits                  bool
}

// job is the job that the flags describe.
func (f *jobFlags) job(ctx context.Context, verb, name string, warn io.Writer) (submit.Job, error) {
	l, err := submit.FindLauncher(verb, name)
	if err != nil {
		return submit.Job{}, err
	}
	j := submit.Job{Verb: verb, Launcher: l, Choices: f.app.Choices, File: f.file, Strict: f.strict, Warn: warn}
	j.Site = func() (hbox.Site, error) { return hboxjob.Site(ctx, f.confDir) }
	j.Choices.Hadoop, j.Choices.Progress = f.filesystem.Hadoop.Login, warn
	j.File.AgentFlags = slices.Concat(f.registry.Changed(), f.filesystem.Args(), f.agent.args())
	j.File.Registry, err = f.registry.Resolve()
	return j, err
}

// launcherArgs are those of a verb that is said LAUNCHER APP.
func launcherArgs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 2 || len(args) > 2 && args[1] == submit.HBoxVerb {
			return nil
		}
		return exit.Usagef("%s: got %d arguments, want LAUNCHER APP; launchers are %s",
			verb, len(args), strings.Join(known.Names(), ", "))
	}
}

// register adds what says what the job is, whatever becomes of its text.
func (f *jobFlags) register(cmd *cobra.Command) {
	set, o := cmd.Flags(), &f.file
	f.app.Register(set)
	f.registry.Register(set)
	f.filesystem.Register(set)
	set.StringVar(&o.Format, "format", "",
		"nomad: hcl, json; k8s: jobset, jobs; yarn: service, shell (default: the first)")
	set.BoolVar(&f.strict, "strict", false, "exit 65 if the launcher cannot express part of the app")
	set.StringVar(&o.AppID, "app-id", "", "name of the gang (default: the app's name)")
	set.StringVar(&o.Run, "run", "", "name of this run of the app (default: the clock's seconds)")
	set.StringVar(&o.App, "app", "", "`APP` as the agents load it (default: APP, a local one by its path)")
	set.StringVar(&o.Binary, "binary", "/usr/local/bin/muster",
		"muster on the hosts: `PATH` or URL#sha256=HEX; a digest is checked at each start")
	set.StringVar(&o.Queue, "queue", "", "queue (yarn, k8s) or partition (slurm) (default: PAI's virtual cluster)")
	set.StringVar(&o.Priority, "priority", "", "a number, VERY_LOW to VERY_HIGH, or a priority class (k8s)")
	set.StringVar(&f.confDir, "conf-dir", "", confDirUsage)
	registerLauncherFlags(set, o)
	f.agent.register(set)
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if f.confDir != "" && args[1] != submit.HBoxVerb {
			return exit.Usagef("%s: --conf-dir %s beside %s: want the words of %s, whose defaults are in that folder",
				cmd.Name(), f.confDir, args[1], submit.HBoxVerb)
		}
		if _, err := submit.FindLauncher(cmd.Name(), args[0]); err != nil {
			return err
		}
		if cmd.Flags().Changed("barrier-timeout") && f.registry.Barrier == 0 {
			return exit.Usagef("--barrier-timeout 0: want a duration above 0, such as 30m; without the flag it is " +
				"the definition's")
		}
		return f.check(args[0])
	}
	offer := func(flag string, words ...string) {
		completeFlag(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words, cobra.ShellCompDirectiveNoFileComp
		})
	}
	offer("driver", "raw_exec", "exec")
	offer("engine", "auto", "container", "cgroup", "process")
	completeFlag(cmd, "format", func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return known.Formats(firstOf(args)), cobra.ShellCompDirectiveNoFileComp
	})
	completeFlag(cmd, "app", completeAppFlag)
}

// registerLauncherFlags adds the flags for launchers, except HBox's own.
func registerLauncherFlags(set flags.Set, o *render.Options) {
	set.DurationVar(&o.KillWindow, "kill-window", 0, "time between the launcher's stop signal and its KILL")
	set.StringVar(&o.TokenFile, "token-file", "", "`FILE` on the hosts with Consul's token")
	set.StringVar(&o.TokenSecret, "token-secret", "",
		"`NAME[/KEY]` of the Secret with Consul's token (k8s; key: token)")
	set.DurationVar(&o.TimeLimit, "time-limit", 0, "longest time from start to end of the job (slurm, k8s, yarn)")
	set.StringVar(&o.Namespace, "namespace", "", "namespace (nomad, k8s)")
	set.StringVar(&o.Region, "region", "", "region (nomad)")
	set.StringArrayVar(&o.Datacenters, "datacenter", nil, "datacenter; repeatable (nomad; default: all)")
	set.StringVar(&o.Driver, "driver", "", "raw_exec or exec (nomad; default: raw_exec)")
	set.StringVar(&o.User, "user", "", "user of the agents (nomad, systemd; k8s: a number)")
	set.BoolVar(&o.Privileged, "privileged", false, "run the agents as root, for containers (systemd)")
	set.StringVar(&o.Image, "image", "", "image of the pods, with muster in it (k8s; default: muster.image)")
}

func (a *jobAgentFlags) register(set flags.Set) {
	set.StringVar(&a.engine, "engine", "", "of the agents, as all below: confinement (default: auto)")
	set.StringVar(&a.ports, "ports", "", "range to take ports from that the launcher does not grant")
	set.StringVar(&a.workDir, "work-dir", "", "folder for package, checkpoints and instances (default: the launcher's)")
	set.StringVar(&a.logDir, "log-dir", "", "folder for logs (default: the launcher's)")
	set.StringVar(&a.policy.File, "policy", "", "policy `FILE` of the hosts' operator")
	a.policy.RegisterHistory(set)
	set.StringArrayVar(&a.env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	set.BoolVar(&a.requireLimits, "require-limits", false, flags.RequireLimitsUsage)
}

func (a *jobAgentFlags) args() []string {
	var out []string
	for _, one := range [][2]string{
		{"--engine", a.engine},
		{"--ports", a.ports},
		{"--work-dir", a.workDir},
		{"--log-dir", a.logDir},
	} {
		if one[1] != "" {
			out = append(out, one[:]...)
		}
	}
	out = append(out, a.history().Args()...)
	for _, one := range a.env {
		out = append(out, "--env", one)
	}
	if a.requireLimits {
		out = append(out, "--require-limits")
	}
	return out
}

// completeRender offers launchers, then what completeApp does.
func completeRender(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return known.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	return completeApp(cmd, args[1:], typed)
}

// check refuses what the agents would: they would be started again and again, and say so on other hosts.
func (f *jobFlags) check(launcher string) error {
	if _, err := f.registry.Times(); err != nil {
		return err
	}
	address, err := f.registry.Resolve()
	if err != nil {
		return err
	}
	from := ""
	if f.registry.Address == "" && os.Getenv("CONSUL_HTTP_ADDR") != "" {
		from = "CONSUL_HTTP_ADDR: "
	}
	l, _ := known.Find(launcher)
	if _, socket := address.Socket(); socket && !l.Client.OneHost {
		return exit.Usagef("%sregistry %s: it is a socket of one host, and %s starts agents on many: want "+
			"consul://HOST:PORT or consul+tls://HOST:PORT, "+
			"or consul://127.0.0.1:8500 where each host has an agent of Consul", from, address, launcher)
	}
	return f.agent.check()
}

// history is what the agents are told of their host's policy, with the store that this environment names.
func (a *jobAgentFlags) history() *flags.Policy {
	p := a.policy
	p.History = cmp.Or(p.History, os.Getenv(flags.HistoryVariable))
	return &p
}

// variableForm is that of muster.env.NAME.
var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (a *jobAgentFlags) check() error {
	if a.engine != "" {
		if err := prepare.CheckEngine(a.engine); err != nil {
			return err
		}
	}
	if _, err := (policy.Policy{}).WithHistory("--history", a.history().History, a.policy.HistoryLogs); err != nil {
		return err
	}
	if a.ports != "" {
		if _, err := flags.Ports(a.ports); err != nil {
			return err
		}
	}
	for _, one := range a.env {
		if name, _, _ := strings.Cut(one, "="); !variableForm.MatchString(name) || strings.HasPrefix(name, "MUSTER_") {
			return exit.Usagef("--env %q: want NAME or NAME=VALUE, with a NAME of letters, digits and _ that does "+
				"not begin with a digit or MUSTER_", one)
		}
	}
	return nil
}
