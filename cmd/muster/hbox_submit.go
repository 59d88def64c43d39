package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/hboxjob"
	"github.com/muster-agent/muster/cmd/internal/madeapp"
	"github.com/muster-agent/muster/cmd/internal/run"
	"github.com/muster-agent/muster/cmd/internal/ssh"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/dryrun"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/submit"
)

const hboxLong = `Takes a command line of hbox-submit, with all spellings of its options, and runs the job: on this
machine as muster run does, unless --launcher names another place. muster's own options stand before
HBox's, so that no option is ambiguous:

  muster hbox-submit --app-id d1 --work-dir w --json --app-type tensorflow --ps-num 2 --worker-num 2 \
      --files train.py --output file:/out#model --conf hbox.app.max.attempts=2 python train.py

--conf takes HBox's names and muster's: --conf muster.NAME=VALUE, or --conf COMPONENT:muster.NAME=VALUE
for the components ps, chiefworker, worker and evaluator. Files of --files, --archiveFiles and --jars
lie in the working directory of every process. Options that only YARN understands are accepted and
reported. --explain and --package show the job without running it.

Prints the job's progress as hbox-submit does, and exits with its exit codes: 0 for success, 2 for a
job that failed, 1 for a job that could not be run.

HBox's options:
`

// hboxFlags are muster's own options of hbox-submit: those of muster run whose names HBox does not have.
type hboxFlags struct {
	run      run.Options
	launcher string
	remote   submitFlags // with a launcher
	confDir  string
	explain  bool
	keep     string // folder for the package; empty: the job is run
}

func newHBoxSubmit(s console.Streams) *cobra.Command {
	f := hboxFlags{}
	f.run.Output, f.run.Ports, f.run.Engine = run.OutputLines, ports.Default.String(), "auto"
	cmd := &cobra.Command{
		Use: "hbox-submit [MUSTER'S OPTIONS] [HBOX'S OPTIONS] COMMAND…", Short: "Run a job as hbox-submit submits it",
		Long: hboxLong + hboxHelp(), DisableFlagParsing: true, DisableFlagsInUseLine: true,
	}
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		own, words := ownOptions(cmd, args)
		if err := cmd.Flags().Parse(own); err != nil {
			return exit.With(hboxRefused, fmt.Errorf("hbox-submit: %w", flagMistake(cmd, err)))
		}
		return f.submit(cmd, s, words)
	}
	return cmd
}

func (f *hboxFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	f.run.Registry.Register(set)
	set.Lookup("registry").Usage = registry.AddressForms + " (default: embedded)"
	f.run.State.Register(set)
	f.run.Filesystem.Register(set)
	set.StringVar(&f.run.AppID, "app-id", "", "name of the gang (default: the job's name and six letters)")
	set.StringVar(&f.run.WorkDir, "work-dir", "", "folder for package, checkpoints and instances")
	set.StringVar(&f.run.LogDir, "log-dir", "", "folder for logs (default: log in the work folder)")
	set.StringVar(&f.run.Host, "host", "", "address of this machine (default: 127.0.0.1 without --registry)")
	set.StringVar(&f.run.Ports, "ports", f.run.Ports, "range to take ports from")
	set.StringVar(&f.run.Engine, "engine", f.run.Engine, "confinement: auto, container, cgroup or process")
	set.BoolVar(&f.run.RequireLimits, "require-limits", false, flags.RequireLimitsUsage)
	set.StringVar(&f.run.Policy.File, "policy", "",
		"policy `FILE` of this host's operator (default: "+policy.DefaultFile+")")
	set.StringArrayVar(&f.run.Env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	set.BoolVar(&f.run.JSON, "json", false, "print the result as JSON")
	set.StringVar(&f.confDir, "conf-dir", "", confDirUsage)
	set.BoolVar(&f.explain, "explain", false, "print what would run, as muster explain does, and run nothing")
	set.StringVar(&f.keep, "package", "", "write the job as an app package into this `FOLDER`, and run nothing")
	set.StringVar(&f.launcher, "launcher", "", "none (this machine), yarn, nomad, slurm, systemd or k8s")
	f.remote.registerRemote(set)
}

// confDirUsage is that of every verb that takes the words of hbox-submit.
const confDirUsage = "`DIR` of hbox-site.xml, the administrator's defaults for hbox-submit (default: HBOX_CONF_DIR)"

// ownOptions are the words at the front that are muster's own; HBox's begin at the first that is none.
func ownOptions(cmd *cobra.Command, args []string) (own, rest []string) {
	for len(args) > 0 {
		name, dashed := strings.CutPrefix(args[0], "--")
		name, _, valued := strings.Cut(name, "=")
		f := cmd.Flags().Lookup(name)
		if !dashed || f == nil || name == "help" {
			break
		}
		n := 1
		if !valued && f.NoOptDefVal == "" && len(args) > 1 {
			n = 2
		}
		own, args = append(own, args[:n]...), args[n:]
	}
	return own, args
}

func hboxHelp() string {
	var b strings.Builder
	for _, o := range hbox.Options() {
		meaning := o.Meaning
		switch {
		case o.Remote:
			meaning += " (only with --launcher)"
		case o.Idle:
			meaning += " (ignored)"
		}
		fmt.Fprintf(&b, "  %-26s %s\n", o.Name, meaning)
	}
	return b.String()
}

// The exit codes of hbox-submit beside 0.
const (
	hboxRefused = 1
	hboxFailed  = 2
)

// hboxCode is the exit code in HBox's numbers: a verdict that is no success is told from all that kept one from coming.
// Ctrl-C ends this command as it ends HBox's client, and not the job.
func hboxCode(err error) error {
	switch {
	case errors.Is(err, submit.ErrLeft), exit.CodeOf(err) == exit.CtrlC && !errors.As(err, new(exit.Silent)):
		return err
	case errors.Is(err, submit.ErrNobody):
		return exit.Silent{Code: hboxRefused}
	}
	if silent, ok := errors.AsType[exit.Silent](err); ok && silent.Code != 0 {
		return exit.Silent{Code: hboxFailed}
	}
	return exit.With(hboxRefused, err)
}

func (f *hboxFlags) submit(cmd *cobra.Command, s console.Streams, words []string) error {
	site, err := hboxjob.Site(cmd.Context(), f.confDir)
	if err != nil {
		return exit.With(hboxRefused, err)
	}
	job, found := hbox.Parse(words, site)
	switch job.Verb {
	case hbox.VerbHelp:
		return cmd.Help()
	case hbox.VerbVersion:
		fmt.Fprintf(s.Out, "muster %s\n", readVersion().Version)
		return nil
	}
	found.Warnings().Print(s.Err)
	if bad := found.Errors(); len(bad) > 0 {
		return exit.With(hboxRefused, bad)
	}
	conf := &f.run.Filesystem.Hadoop.Conf
	if *conf, err = job.PickConf(*conf); err != nil {
		return exit.With(hboxRefused, err)
	}
	if where := cmp.Or(job.Launcher, f.launcher, "none"); where != "none" && !f.explain && f.keep == "" {
		return hboxCode(f.there(cmd.Context(), s, where, job))
	}
	if names := job.CarriedNames(); len(names) > 0 {
		fmt.Fprintf(s.Err, "note: ignored: %s\n", strings.Join(names, ", "))
	}
	if f.explain || f.keep != "" {
		return exit.With(hboxRefused, f.look(cmd.Context(), s, job))
	}
	return hboxCode(f.here(cmd.Context(), s, job))
}

// look shows the job without running it: as a sheet for people, as a package that muster's other verbs read, or both.
func (f *hboxFlags) look(ctx context.Context, s console.Streams, job hbox.Submission) (err error) {
	around := os.TempDir()
	if f.keep != "" {
		around = filepath.Dir(flags.Absolute(f.keep))
	}
	dir, remove, err := hboxjob.Package(around, job)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if f.explain {
		sheet := planFlags{
			Options:    dryrun.Options{Roster: dryrun.ExampleRoster, Engine: f.run.Engine, WorkDir: f.run.WorkDir},
			filesystem: f.run.Filesystem, policy: f.run.Policy,
		}
		if err := sheet.explain(ctx, s, dir); err != nil {
			return err
		}
	}
	if f.keep == "" {
		return nil
	}
	if err := madeapp.Keep(dir, f.keep); err != nil {
		return fmt.Errorf("hbox-submit: --package %w", err)
	}
	return nil
}

// here runs the job on this machine: as a package that is made of it, by the code of muster run.
func (f *hboxFlags) here(ctx context.Context, s console.Streams, job hbox.Submission) (err error) {
	if err := f.run.Settle(job.App); err != nil {
		return err
	}
	dir, remove, err := hboxjob.Package(f.run.WorkDir, job)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := hboxjob.Progress{
		State: f.run.State.Resolve(), App: f.run.AppID, Result: filepath.Join(f.run.WorkDir, "result.json"), Out: s.Err,
		Workers: submit.Workers(&job.App),
	}
	stop := p.Follow(ctx)
	quiet, err := f.announce(ctx, s, f.run.AppID, job)
	if err == nil {
		err = f.run.Run(ctx, s, dir)
		quiet()
	}
	stop(err)
	return err
}

// announce tells how to log in to a job whose user HBox tells.
func (f *hboxFlags) announce(
	ctx context.Context, s console.Streams, app string, job hbox.Submission,
) (quiet func(), err error) {
	if !job.App.Settings.HBox.GivesLogin() {
		return func() {}, nil
	}
	ask := flags.Ask{Registry: f.run.Registry, State: f.run.State}
	k, err := ask.Lookup(app, io.Discard)
	return ssh.Announcement{
		Lookup: k, App: app, Out: s.Err, Digits: job.App.Settings.HBox.Type == "DIGITS",
	}.Follow(ctx), err
}
