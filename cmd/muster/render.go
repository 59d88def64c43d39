package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/render"
)

const renderLong = `Writes what a resource manager is told to run APP by: one agent for each instance, with limits, ports, counts, placement,
stop and retries. All dialects render: a package, a job file of PAI, or the words of a submission behind -- hbox-submit.

  nomad     a batch job, HCL; --format json as Nomad's API takes it
  systemd   a template unit of the app, a target, and the limits of each instance: files of a folder, which -o names
  slurm     a script for sbatch; heterogeneous where components differ in size
  k8s       a JobSet; --format jobs: indexed Jobs and a Service
  yarn      a service of YARN's service API, JSON; --format shell: the distributed shell's command lines

The agents load APP by the name that --app gives, and muster is at --binary on each host, or fetched from there. What a
launcher has no word for is listed on stderr, a line each, beginning with "lost:", and stands in the file as a comment.
Each rendering names a new run, the seconds of the clock; --run names another.`

type renderFlags struct {
	app        flags.App
	registry   flags.Registry
	filesystem flags.Filesystem
	options    render.Options
	agent      renderAgentFlags
	output     string
	strict     bool
	json       bool
}

// renderAgentFlags are flags of the agents that a job file hands on as they are.
type renderAgentFlags struct {
	engine, ports, workDir, logDir, policy string
	env                                    []string
	requireLimits                          bool
}

// rendering is the answer of muster render --json.
type rendering struct {
	Version  int               `json:"version"`
	Launcher string            `json:"launcher"`
	Format   string            `json:"format"`
	App      string            `json:"app"`
	Run      string            `json:"run"`
	Files    map[string]string `json:"files"`
	Lost     []string          `json:"lost"`
}

func newRender(s console.Streams) *cobra.Command {
	f := renderFlags{}
	cmd := &cobra.Command{
		Use: "render LAUNCHER APP", Short: "Write the job file that a resource manager runs an app by", Long: renderLong,
		Args: launcherArgs("render"),
		Example: `  muster render nomad catalog:handwriting > hand.nomad.hcl
  muster render systemd catalog:tensorflow --app-id tf -o units
  muster render k8s job.json --app hdfs://nn/apps/job.json --image registry.example/muster:1
  muster render yarn --format shell --app hdfs://nn/apps/j1.zip -- hbox-submit --app-type tensorflow --worker-num 2 python train.py`,
		ValidArgsFunction: completeRender,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.render(cmd.Context(), s, args) },
	}
	f.register(cmd)
	return cmd
}

// launcherArgs are those of a verb that is said LAUNCHER APP.
func launcherArgs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 2 || len(args) > 2 && args[1] == hboxVerb {
			return nil
		}
		return exit.Usagef("%s: got %d arguments, want LAUNCHER APP; launchers are %s", verb, len(args), strings.Join(known.Names(), ", "))
	}
}

// hboxVerb in APP's place begins the words of a submission.
const hboxVerb = "hbox-submit"

func (f *renderFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.registerJob(cmd)
	flags.StringVarP(&f.output, "output", "o", "", "write to this `FILE`, several into this folder, in place of stdout; nothing is written over")
	flags.BoolVar(&f.json, "json", false, "print {launcher, format, app, run, files, lost} as JSON")
}

// registerJob adds what says what the job is, whatever becomes of its text.
func (f *renderFlags) registerJob(cmd *cobra.Command) {
	flags, o := cmd.Flags(), &f.options
	f.app.Register(flags)
	f.registry.Register(flags)
	f.filesystem.Register(flags)
	flags.StringVar(&o.Format, "format", "", "hcl or json (nomad), jobset or jobs (k8s), service or shell (yarn); the first is the default")
	flags.BoolVar(&f.strict, "strict", false, "end with 65 where something is lost")
	flags.StringVar(&o.AppID, "app-id", "", "name of the gang (default: the app's name)")
	flags.StringVar(&o.Run, "run", "", "one life of the app (default: the seconds of the clock)")
	flags.StringVar(&o.App, "app", "", "`APP` as the agents load it (default: APP, a local one by its path)")
	flags.StringVar(&o.Binary, "binary", "/usr/local/bin/muster", "path of muster on the hosts, or a URL that the launcher fetches it from (nomad: http:, https:; yarn: hdfs:)")
	flags.StringVar(&o.Queue, "queue", "", "queue of YARN or Kueue, partition of Slurm (default: a PAI job's virtual cluster)")
	flags.StringVar(&o.Priority, "priority", "", "a number, or HBox's VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH; of k8s a priority class")
	registerLauncher(flags, o)
	f.agent.register(flags)
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := knownLauncher(cmd.Name(), args[0]); err != nil {
			return err
		}
		if cmd.Flags().Changed("barrier-timeout") && f.registry.Barrier == 0 {
			return exit.Usagef("--barrier-timeout 0: want a duration above 0, such as 30m; without the flag it is the definition's")
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

// registerLauncher adds what is said to launchers, HBox's own words apart.
func registerLauncher(flags flags.Set, o *render.Options) {
	flags.DurationVar(&o.KillWindow, "kill-window", 0, "time between the launcher's stop signal and its KILL (default: enough for the grace, where the launcher can be told)")
	flags.StringVar(&o.TokenFile, "token-file", "", "`FILE` on the hosts with Consul's token")
	flags.StringVar(&o.TokenSecret, "token-secret", "", "`NAME[/KEY]` of the Secret with Consul's token (k8s; key: token)")
	flags.DurationVar(&o.TimeLimit, "time-limit", 0, "most time from a start of the job to its end (slurm, k8s, yarn)")
	flags.StringVar(&o.Namespace, "namespace", "", "namespace (nomad, k8s)")
	flags.StringVar(&o.Region, "region", "", "region (nomad)")
	flags.StringArrayVar(&o.Datacenters, "datacenter", nil, "datacenter; repeatable (nomad; default: all)")
	flags.StringVar(&o.Driver, "driver", "", "raw_exec or exec (nomad; the first is the default)")
	flags.StringVar(&o.User, "user", "", "user of the agents (nomad, systemd; of k8s a number)")
	flags.BoolVar(&o.Privileged, "privileged", false, "agents are root, and make containers (systemd)")
	flags.StringVar(&o.Image, "image", "", "image of the pods, with muster in it (k8s; default: each component's muster.image)")
}

func (a *renderAgentFlags) register(flags flags.Set) {
	flags.StringVar(&a.engine, "engine", "", "of the agents, as all below: how processes are confined (default: auto)")
	flags.StringVar(&a.ports, "ports", "", "range to take ports from that the launcher does not grant")
	flags.StringVar(&a.workDir, "work-dir", "", "folder for package, checkpoints and instances (default: the launcher's)")
	flags.StringVar(&a.logDir, "log-dir", "", "folder for logs (default: the launcher's)")
	flags.StringVar(&a.policy, "policy", "", "what the hosts' operator permits and forbids")
	flags.StringArrayVar(&a.env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	flags.BoolVar(&a.requireLimits, "require-limits", false, "run only where every limit that is asked for is enforced")
}

func (a *renderAgentFlags) args() []string {
	var out []string
	for _, one := range [][2]string{
		{"--engine", a.engine}, {"--ports", a.ports}, {"--work-dir", a.workDir}, {"--log-dir", a.logDir}, {"--policy", a.policy},
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

func (f *renderFlags) render(ctx context.Context, s console.Streams, args []string) error {
	launcher := args[0]
	app, lost, err := f.read(ctx, s, args[1:])
	if err != nil {
		return err
	}
	if err := f.settle(&app); err != nil {
		return err
	}
	job, err := known.Render(launcher, app, f.options)
	if err != nil {
		return exit.Usagef("render %w", err)
	}
	job.Lost = append(job.Lost, lost...)
	return f.deliver(s, launcher, job)
}

// read is the App, and what a submission of HBox's carries beside it that has no place here.
func (f *renderFlags) read(ctx context.Context, s console.Streams, args []string) (appdef.App, []string, error) {
	if args[0] == hboxVerb {
		return f.submission(s, args[1:])
	}
	f.app.Hadoop, f.app.Progress = f.filesystem.Hadoop.Login, s.Err
	l, found, err := f.app.Read(ctx, args[0])
	if err != nil {
		return appdef.App{}, nil, err
	}
	defer l.Close()
	found.Warnings().Print(s.Err)
	if bad := exit.OfProblems(found); bad != nil {
		return appdef.App{}, nil, bad
	}
	if f.options.App == "" {
		f.options.App = l.Ref
		if filepath.IsAbs(l.Ref) {
			fmt.Fprintf(s.Err, "note: the agents load %s: it must be there on every host; --app names another place\n", l.Ref)
		}
	}
	return l.App, nil, nil
}

// submission is a command line of hbox-submit. Agents do not read one: they need the package that it is into.
func (f *renderFlags) submission(s console.Streams, words []string) (appdef.App, []string, error) {
	job, err := f.words(s, "render", words)
	if err != nil {
		return appdef.App{}, nil, err
	}
	if f.options.App == "" {
		return appdef.App{}, nil, exit.Usagef("render: --app is missing: where the agents find the package; muster hbox-submit --package FOLDER writes it")
	}
	lost, err := f.carried(job)
	return job.App, lost, err
}

// words reads a command line of hbox-submit for a verb of ours.
func (f *renderFlags) words(s console.Streams, verb string, words []string) (hbox.Submission, error) {
	job, found := hbox.Parse(words)
	if job.Verb != hbox.VerbRun {
		return job, exit.Usagef("%s: hbox-submit: want a job", verb)
	}
	found.Warnings().Print(s.Err)
	if bad := found.Errors(); len(bad) > 0 {
		return job, exit.With(exit.Usage, bad)
	}
	if len(f.app.Set) > 0 || len(f.app.Instances) > 0 {
		return job, exit.Usagef("%s: --set and --instances are of packages; say it in the words of hbox-submit, as --conf", verb)
	}
	return job, nil
}

// carried takes over what HBox's options say to YARN, and lists the rest.
func (f *renderFlags) carried(job hbox.Submission) (lost []string, err error) {
	o := &f.options
	for _, name := range slices.Sorted(maps.Keys(job.Carried)) {
		ok := true
		switch value := job.Carried[name]; name {
		case "queue", "hbox.app.queue":
			o.Queue = cmp.Or(o.Queue, value)
		case "priority", "hbox.app.priority":
			o.Priority = cmp.Or(o.Priority, value)
		case "driver-memory", "hbox.driver.memory":
			o.MasterMemoryMB, ok = hbox.Megabytes(value)
		case "driver-cores", "hbox.driver.cores":
			o.MasterVCores, err = appdef.ParseInt(value)
			ok = err == nil && o.MasterVCores > 0
		default:
			lost = append(lost, "hbox-submit: "+name+": it is of HBox's own services")
		}
		if !ok {
			return nil, exit.Usagef("hbox-submit: %s %q: want a whole number above 0; memory in megabytes, or with G or M behind it", name, job.Carried[name])
		}
	}
	return lost, nil
}

// settle fills in what neither flags nor APP have said.
func (f *renderFlags) settle(app *appdef.App) error {
	o := &f.options
	o.AppID = cmp.Or(o.AppID, appdef.NameOf(app.Name, ""))
	o.Run = cmp.Or(o.Run, strconv.FormatInt(time.Now().Unix(), 10))
	if err := cmp.Or(appdef.CheckName("--app-id", o.AppID), appdef.CheckName("--run", o.Run)); err != nil {
		return exit.With(exit.Usage, err)
	}
	if q := app.Settings.PAI.VirtualCluster; o.Queue == "" && q != "default" {
		o.Queue = q
	}
	var err error
	if o.Registry, err = f.registry.Resolve(); err != nil {
		return err
	}
	changes, err := f.app.Args()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	o.AppFlags = changes
	o.AgentFlags = slices.Concat(f.registry.Changed(), f.filesystem.Args(), f.agent.args())
	return nil
}

func (f *renderFlags) deliver(s console.Streams, launcher string, job render.Job) error {
	for _, line := range job.Lost {
		fmt.Fprintln(s.Err, "lost: "+line)
	}
	out := rendering{
		Version: 1, Launcher: launcher, Format: cmp.Or(f.options.Format, known.Formats(launcher)[0]), App: f.options.AppID, Run: f.options.Run,
		Files: map[string]string{}, Lost: append([]string{}, job.Lost...),
	}
	for _, file := range job.Files {
		out.Files[file.Name] = file.Text
	}
	switch {
	case f.strict && len(job.Lost) > 0:
		return exit.With(exit.Definition, fmt.Errorf("render: %s cannot say %s", launcher, appdef.Counted(len(job.Lost), "thing")))
	case f.output != "":
		if err := f.save(job.Files); err != nil {
			return err
		}
	}
	if f.json {
		return console.PrintJSON(s.Out, out)
	}
	if f.output != "" {
		return nil
	}
	return printFiles(s, job.Files)
}

// printFiles prints one file as it is, several with their names above, as systemctl cat does.
func printFiles(s console.Streams, files []render.File) error {
	for i, file := range files {
		text := file.Text
		if len(files) > 1 {
			text = "# " + file.Name + "\n" + text
		}
		if i > 0 {
			text = "\n" + text
		}
		if _, err := fmt.Fprint(s.Out, text); err != nil {
			return exit.With(exit.Internal, fmt.Errorf("print: %w", err))
		}
	}
	return nil
}

// save writes the files, none over another; several go into a folder.
func (f *renderFlags) save(files []render.File) error {
	texts := map[string]string{}
	for _, file := range files {
		path := f.output
		if len(files) > 1 {
			path = filepath.Join(f.output, file.Name)
		}
		texts[path] = file.Text
	}
	return writeNew("render", texts)
}
