package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/known"
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
}

// jobAgentFlags are flags of the agents that a job file hands on as they are.
type jobAgentFlags struct {
	engine, ports, workDir, logDir, policy string
	env                                    []string
	requireLimits                          bool
}

// job is the job that the flags describe.
func (f *jobFlags) job(verb, name string, warn io.Writer) (submit.Job, error) {
	l, err := submit.FindLauncher(verb, name)
	if err != nil {
		return submit.Job{}, err
	}
	j := submit.Job{Verb: verb, Launcher: l, Choices: f.app.Choices, File: f.file, Strict: f.strict, Warn: warn}
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
	flags, o := cmd.Flags(), &f.file
	f.app.Register(flags)
	f.registry.Register(flags)
	f.filesystem.Register(flags)
	flags.StringVar(&o.Format, "format", "",
		"hcl or json (nomad), jobset or jobs (k8s), service or shell (yarn); the first is the default")
	flags.BoolVar(&f.strict, "strict", false, "end with 65 where something is lost")
	flags.StringVar(&o.AppID, "app-id", "", "name of the gang (default: the app's name)")
	flags.StringVar(&o.Run, "run", "", "one life of the app (default: the seconds of the clock)")
	flags.StringVar(&o.App, "app", "", "`APP` as the agents load it (default: APP, a local one by its path)")
	flags.StringVar(&o.Binary, "binary", "/usr/local/bin/muster",
		"path of muster on the hosts, or a URL that the launcher fetches it from (nomad: http:, https:; yarn: hdfs:)")
	flags.StringVar(&o.Queue, "queue", "",
		"queue of YARN or Kueue, partition of Slurm (default: a PAI job's virtual cluster)")
	flags.StringVar(&o.Priority, "priority", "",
		"a number, or HBox's VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH; of k8s a priority class")
	registerLauncherFlags(flags, o)
	f.agent.register(flags)
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
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
func registerLauncherFlags(flags flags.Set, o *render.Options) {
	flags.DurationVar(&o.KillWindow, "kill-window", 0, "time between the launcher's stop signal and its KILL "+
		"(default: enough for the grace, where the launcher can be told)")
	flags.StringVar(&o.TokenFile, "token-file", "", "`FILE` on the hosts with Consul's token")
	flags.StringVar(&o.TokenSecret, "token-secret", "",
		"`NAME[/KEY]` of the Secret with Consul's token (k8s; key: token)")
	flags.DurationVar(&o.TimeLimit, "time-limit", 0, "most time from a start of the job to its end (slurm, k8s, yarn)")
	flags.StringVar(&o.Namespace, "namespace", "", "namespace (nomad, k8s)")
	flags.StringVar(&o.Region, "region", "", "region (nomad)")
	flags.StringArrayVar(&o.Datacenters, "datacenter", nil, "datacenter; repeatable (nomad; default: all)")
	flags.StringVar(&o.Driver, "driver", "", "raw_exec or exec (nomad; the first is the default)")
	flags.StringVar(&o.User, "user", "", "user of the agents (nomad, systemd; of k8s a number)")
	flags.BoolVar(&o.Privileged, "privileged", false, "agents are root, and make containers (systemd)")
	flags.StringVar(&o.Image, "image", "",
		"image of the pods, with muster in it (k8s; default: each component's muster.image)")
}

func (a *jobAgentFlags) register(flags flags.Set) {
	flags.StringVar(&a.engine, "engine", "", "of the agents, as all below: how processes are confined (default: auto)")
	flags.StringVar(&a.ports, "ports", "", "range to take ports from that the launcher does not grant")
	flags.StringVar(&a.workDir, "work-dir", "",
		"folder for package, checkpoints and instances (default: the launcher's)")
	flags.StringVar(&a.logDir, "log-dir", "", "folder for logs (default: the launcher's)")
	flags.StringVar(&a.policy, "policy", "", "what the hosts' operator permits and forbids")
	flags.StringArrayVar(&a.env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	flags.BoolVar(&a.requireLimits, "require-limits", false, "run only where every limit that is asked for is enforced")
}

func (a *jobAgentFlags) args() []string {
	var out []string
	for _, one := range [][2]string{
		{"--engine", a.engine},
		{"--ports", a.ports},
		{"--work-dir", a.workDir},
		{"--log-dir", a.logDir},
		{"--policy", a.policy},
	} {
		if one[1] != "" {
			out = append(out, one[:]...)
		}
	}
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

// variableForm is that of muster.env.NAME.
var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (a *jobAgentFlags) check() error {
	if a.engine != "" {
		if err := prepare.CheckEngine(a.engine); err != nil {
			return err
		}
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
