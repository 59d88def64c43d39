package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/hboxjob"
	"github.com/muster-agent/muster/cmd/internal/oneline"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/submit"
)

const submitLong = `Has a resource manager run APP: writes its job as muster render does, copies what the hosts
need into the run's own folder of the store, and starts the job with the launcher's client or API.
Prints the launcher's id.

  nomad     Nomad's HTTP API: --address, else NOMAD_ADDR; NOMAD_TOKEN, NOMAD_CACERT and so on
  yarn      YARN's service API, at --address or the ResourceManager of yarn-site.xml, as the user
            HADOOP_USER_NAME or the caller; --format shell: the client yarn of HADOOP_HOME
  slurm     sbatch
  systemd   units below --unit-dir on this host, and systemctl
  k8s       kubectl create; muster is in the image

The store (--store, or muster.store in the definition) is a folder that all hosts see, or hdfs:. It
receives a package of this host, the files and archives of an HBox submission, and this muster itself,
unless --binary says where it is on each host. Packages of the catalog and packages with a URL are not
copied. The run's folder is removed when the run has ended: with --wait once the launcher says that
the job ended, else by a later muster submit to that store.

--wait follows the run in the registry and exits with its verdict (muster help exit-codes). Ctrl-C
leaves the job running and prints how to follow and to stop it. With --kill-on-interrupt Ctrl-C stops
the run in grace, and a second one ends the job.`

// submitFlags are those of muster submit: the job's are those of render.
type submitFlags struct {
	job     jobFlags
	state   flags.State
	store   string
	storeAs string
	address string // of the launcher's API
	unitDir string
	wait    bool
	kill    bool // on Ctrl-C while waiting
	json    bool
}

func newSubmit(s console.Streams) *cobra.Command {
	f := submitFlags{}
	line := oneline.Line{}
	cmd := &cobra.Command{
		Use: "submit LAUNCHER {APP | -n N -- COMMAND…}", DisableFlagsInUseLine: true,
		Short: "Have a resource manager run an app",
		Long:  submitLong, Args: launcherAndLine("submit", &line),
		Example: `  muster submit slurm -n 3 --store /shared/muster --wait -- python train.py
  muster submit nomad myapp.zip --store /shared/muster --wait
  muster submit yarn catalog:handwriting --store hdfs:///tmp/muster \
      --registry consul://consul:8500
  muster submit slurm job.json --store /shared/muster --time-limit 2h \
      --wait --kill-on-interrupt
  muster submit yarn --store hdfs:///tmp/muster \
      -- hbox-submit --worker-num 2 --files train.py python train.py`,
		ValidArgsFunction: completeRender,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.submitLine(cmd.Context(), s, &line, args)
		},
	}
	f.job.register(cmd)
	f.register(cmd.Flags())
	line.RegisterBare(cmd.Flags())
	binary := cmd.Flags().Lookup("binary")
	binary.DefValue, binary.Usage = "",
		"muster on the hosts: PATH[#sha256=HEX] (default: this; k8s: "+submit.PodBinary+")"
	f.job.file.Binary = ""
	set := cmd.Flags()
	set.BoolVar(&f.wait, "wait", false, "follow the run, and exit with its verdict")
	set.BoolVar(&f.json, "json", false, "print the answer as JSON")
	return cmd
}

// register adds what render does not have, but for what a submission of HBox's says by itself.
func (f *submitFlags) register(set flags.Set) {
	f.state.Register(set)
	set.StringVar(&f.store, "store", "", "`URL` of a folder that all hosts see, or hdfs: (default: muster.store)")
	set.StringVar(&f.storeAs, "store-as", "", "the store as the hosts see it: another path, or a web server's `URL`")
	set.StringVar(&f.address, "address", "", "`URL` of Nomad or YARN (default: NOMAD_ADDR; yarn-site.xml)")
	set.StringVar(&f.unitDir, "unit-dir", "/etc/systemd/system", "`DIR` for systemd's units")
	set.BoolVar(&f.kill, "kill-on-interrupt", false,
		"with --wait: Ctrl-C stops the run, a second one the job; exit 130")
}

// submitLine submits APP, or the package that is made of a line.
func (f *submitFlags) submitLine(ctx context.Context, s console.Streams, line *oneline.Line, args []string) error {
	if len(line.Words) == 0 {
		return f.submit(ctx, s, args)
	}
	l, err := submit.FindLauncher("submit", args[0])
	if err != nil {
		return err
	}
	if l.Client.OneHost && f.store == "" {
		return exit.Usagef("submit %s: the agents of %[1]s read the package where it lies: --store keeps one, or "+
			"--save DIR writes it, and muster submit %[1]s DIR", args[0])
	}
	if !l.Client.InImage {
		line.Image, f.job.file.Image = f.job.file.Image, ""
	}
	return withLine(s, "submit", &f.job.app, line, "", func(ref string) error {
		return f.submit(ctx, s, []string{args[0], ref})
	})
}

func (f *submitFlags) submit(ctx context.Context, s console.Streams, args []string) error {
	if f.kill && !f.wait {
		return exit.Usagef("submit: --kill-on-interrupt without --wait")
	}
	o, err := f.submission(ctx, s, "submit", args[0])
	if err != nil {
		return err
	}
	return o.Run(ctx, args[1:])
}

// submission is what is submitted to the launcher of that name.
func (f *submitFlags) submission(
	ctx context.Context, s console.Streams, verb, launcher string,
) (*submit.Options, error) {
	j, err := f.job.job(ctx, verb, launcher, s.Err)
	if err != nil {
		return nil, err
	}
	j.Verb = "submit"
	at := j.File.Registry
	o := &submit.Options{
		Job: j, Store: f.store, StoreAs: f.storeAs, Address: f.address, UnitDir: f.unitDir, Wait: f.wait, Kill: f.kill,
		Registry: runsOf{apps.Lookup{State: f.state.Resolve(), Address: at, Named: true, Warn: s.Err}, at},
		User:     apps.Asker(), Page: flags.Page,
		Pack: func(dir string, job hbox.Submission) (string, error) {
			made, _, err := hboxjob.Package(dir, job) // it goes with the folder
			return made, err
		},
		Out: s.Out, Err: s.Err,
	}
	if f.json {
		o.Answer = func(a submit.Answer) error { return console.PrintJSON(s.Out, a) }
	}
	return o, nil
}
