package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/known"
)

const submitLong = `Has a resource manager run APP: writes its job as muster render does, puts what the hosts need of it into the store, each
file once by its digest, and starts it with the launcher's own client or API. Prints the launcher's id.

  nomad     Nomad's HTTP API: --address, else NOMAD_ADDR; NOMAD_TOKEN, NOMAD_CACERT and so on
  yarn      YARN's service API at the ResourceManager that yarn-site.xml names, or --address; the user is HADOOP_USER_NAME,
            else who calls. --format shell: the distributed shell, by the client yarn of HADOOP_HOME
  slurm     sbatch
  systemd   units below --unit-dir on this host, and systemctl
  k8s       kubectl create; muster is in the image

The store (--store, or muster.store in the definition) is a folder that all hosts see, or hdfs:. Into it go a package that
lies here, what --files and archives of a submission of HBox's name, and this muster itself, unless --binary says where it is
on each host. Packages of the catalog and those with a URL are not copied. What one run brought goes when the run has ended,
and what other runs use stays: with --wait at once, else with the next muster submit to that store.

--wait follows the run in the registry and ends with its verdict (muster help exit-codes). Ctrl-C leaves the job running and
says how to follow and to stop it; with --kill-on-interrupt it stops the run in grace, and a second one ends the job there.`

// submitFlags are those of muster submit: the job's are those of render.
type submitFlags struct {
	job     renderFlags
	state   flags.State
	store   string
	storeAs string // the store as the hosts see it; empty: as we do
	address string // of the launcher's API
	unitDir string
	wait    bool
	kill    bool // on Ctrl-C while waiting
	json    bool
	hbox    bool // the progress is HBox's
}

// submission is the answer of muster submit --json.
type submission struct {
	Version  int      `json:"version"`
	Launcher string   `json:"launcher"`
	ID       string   `json:"id"`
	App      string   `json:"app"`
	Run      string   `json:"run"`
	Registry string   `json:"registry"`
	Store    string   `json:"store"` // empty: nothing was brought
	Objects  []string `json:"objects"`
	Lost     []string `json:"lost"`
	Outcome  *string  `json:"outcome"` // null: it was not waited for, or has none
	Code     *int     `json:"code"`    // that this ends with
}

func newSubmit(s console.Streams) *cobra.Command {
	f := submitFlags{}
	cmd := &cobra.Command{
		Use: "submit LAUNCHER APP", Short: "Have a resource manager run an app", Long: submitLong, Args: launcherArgs("submit"),
		Example: `  muster submit nomad myapp.zip --store /shared/muster --wait
  muster submit yarn catalog:handwriting --store hdfs:///tmp/muster --registry consul://consul:8500
  muster submit slurm job.json --store /shared/muster --time-limit 2h --wait --kill-on-interrupt
  muster submit yarn --store hdfs:///tmp/muster -- hbox-submit --app-type tensorflow --worker-num 2 --files train.py python train.py`,
		ValidArgsFunction: completeRender,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.submit(cmd.Context(), s, args) },
	}
	f.job.registerJob(cmd)
	f.register(cmd.Flags())
	binary := cmd.Flags().Lookup("binary")
	binary.DefValue, binary.Usage = "", "path of muster on the hosts, or a URL that the launcher fetches it from (default: this muster, by way of the store; k8s: "+podBinary+")"
	f.job.options.Binary = ""
	flags := cmd.Flags()
	flags.BoolVar(&f.wait, "wait", false, "follow the run, and end with its verdict")
	flags.BoolVar(&f.json, "json", false, "print {launcher, id, app, run, registry, store, objects, lost, outcome, code} as JSON")
	return cmd
}

// podBinary is where muster is in the image of a pod.
const podBinary = "/usr/local/bin/muster"

// register adds what render does not have, but for what a submission of HBox's says by itself.
func (f *submitFlags) register(flags flags.Set) {
	f.state.Register(flags)
	flags.StringVar(&f.store, "store", "", "`URL` of the folder for what the hosts need: hdfs:, or one that all hosts see (default: muster.store)")
	flags.StringVar(&f.storeAs, "store-as", "", "the store as the hosts see it: the `URL` of a web server that shows the folder, or another path")
	flags.StringVar(&f.address, "address", "", "`URL` of Nomad, or of YARN's ResourceManager (default: NOMAD_ADDR; yarn-site.xml)")
	flags.StringVar(&f.unitDir, "unit-dir", "/etc/systemd/system", "`DIR` for systemd's units")
	flags.BoolVar(&f.kill, "kill-on-interrupt", false, "Ctrl-C while waiting stops the run, and this ends with 130; a second one ends the job")
}

func knownLauncher(verb, launcher string) error {
	if slices.Contains(known.Names(), launcher) {
		return nil
	}
	hint := ""
	near, ok := appdef.Nearest(launcher, known.Names())
	if name, found := known.NameOf(launcher); found {
		near, ok = name, true
	}
	if ok {
		hint = "; did you mean " + near + "?"
	}
	return exit.Usagef("%s: launcher %q: want one of %s%s", verb, launcher, strings.Join(known.Names(), ", "), hint)
}

func (f *submitFlags) submit(ctx context.Context, s console.Streams, args []string) error {
	launcher := args[0]
	if f.kill && !f.wait {
		return exit.Usagef("submit: --kill-on-interrupt without --wait")
	}
	if want := clientOf(launcher).Format; want != "" {
		if f.job.options.Format != "" && f.job.options.Format != want {
			return exit.Usagef("submit %s: --format %s: its API takes %s", launcher, f.job.options.Format, want)
		}
		f.job.options.Format = want
	}
	if args[1] == hboxVerb {
		return f.submitWords(ctx, s, launcher, args[2:])
	}
	return f.submitApp(ctx, s, launcher, args[1])
}

// loader reads an app and says in the cargo what of it is brought.
type loader func(context.Context, console.Streams, *cargo) (appdef.App, error)

// bring makes ready what load reads, and launches it. Until it is started, Ctrl-C leaves nothing behind; a second one ends this
// command at once.
func (f *submitFlags) bring(ctx context.Context, s console.Streams, launcher string, load loader) (err error) {
	s.Err = &turns{w: s.Err}
	starting, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	settled := context.AfterFunc(starting, func() {
		stop()
		fmt.Fprintln(s.Err, "interrupted: what was begun is taken back; once more ends this command at once")
	})
	defer settled()
	c, err := newCargo()
	if err != nil {
		return err
	}
	defer c.remove()
	r, err := f.launch(starting, s, launcher, c, load)
	switch {
	case starting.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(starting))):
		return exit.With(ctrlCCode, errors.Join(errors.New("submit: interrupted before it was started"), c.stays))
	case err != nil:
		return err
	}
	begun := func() bool {
		quiet := settled()
		stop()
		return quiet
	}
	if f.wait {
		return r.follow(ctx, begun)
	}
	if !begun() {
		return r.undo(ctx)
	}
	err = r.tell(nil)
	r.tidy(ctx, func(line string) { fmt.Fprintln(s.Err, line) })
	return err
}

// turns has those who write at once write one after the other.
type turns struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *turns) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}

// launch brings the cargo and starts the job.
func (f *submitFlags) launch(ctx context.Context, s console.Streams, launcher string, c *cargo, load loader) (*sent, error) {
	app, err := load(ctx, s, c)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // nothing of that hears of it
		return nil, err
	}
	if err := f.stow(ctx, s, launcher, app, c); err != nil {
		return nil, err
	}
	if err := f.job.settle(&app); err != nil {
		return nil, err
	}
	rendered, err := known.Render(launcher, app, f.job.options)
	if err != nil {
		return nil, exit.Usagef("submit %w", err)
	}
	rendered.Lost = append(rendered.Lost, c.lost...)
	for _, line := range rendered.Lost {
		fmt.Fprintln(s.Err, "lost: "+line)
	}
	if f.job.strict && len(rendered.Lost) > 0 {
		return nil, exit.With(exit.Definition, fmt.Errorf("submit: %s cannot say %s", launcher, appdef.Counted(len(rendered.Lost), "thing")))
	}
	to, err := clientOf(launcher).New(job.Request{
		Job: rendered, Options: f.job.options, Address: f.address, UnitDir: f.unitDir,
		Hadoop: f.job.filesystem.Hadoop.Conf, Fetch: f.job.filesystem.Hadoop.Fetching(s.Err),
	})
	if err != nil {
		return nil, err
	}
	r := &sent{
		flags: f, streams: s, launcher: launcher, job: to, cargo: c, app: f.job.options.AppID, run: f.job.options.Run, registry: f.job.options.Registry,
		def: app, lost: rendered.Lost,
	}
	return r, r.start(ctx)
}

// clientOf is how jobs come to the launcher of that name.
func clientOf(name string) job.Launcher {
	l, _ := known.Find(name)
	return l.Client
}

// submitCode is the exit code of what kept a job from being started.
func submitCode(err error) error {
	code := 1
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, job.ErrRuns), errors.Is(err, job.ErrForeign):
		code = exit.Held
	case errors.Is(err, job.ErrUnreachable):
		code = exit.Registry
	}
	return exit.Default(code, err)
}
