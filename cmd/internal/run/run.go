package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/detach"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/workdir"
)

// Options are the settings of `muster run`.
type Options struct {
	App           flags.App
	AppID         string
	WorkDir       string
	LogDir        string
	Host          string
	Ports         string
	Env           []string
	Engine        string
	RequireLimits bool
	Policy        flags.Policy
	Registry      flags.Registry
	Filesystem    flags.Filesystem
	State         flags.State
	PAIReport     bool
	Fresh         bool // start without the checkpoints of earlier runs in the work folder
	// Detach are the arguments of a `muster run` to start in a session of its own; nil: the run is this process's.
	Detach []string
	shown
}

// shown is how a person sees a run.
type shown struct {
	JSON   bool
	Output string
	// Page serves a page of the run until its end is called, and tells each link of it; nil: there is none.
	Page func(tell func(link string)) (end func(), err error)
}

// runner is one `muster run`.
type runner struct {
	flags   *Options
	streams console.Streams
	app     *openapp.App
	appID   string
	runID   string
	workDir string
	logDir  string
	state   status.Dir
	address registry.Address
	client  *consul.Client
	log     *slog.Logger
	started time.Time
	agents  []*child
	closers []func()

	screen sync.Mutex // of stderr
	drawn  int        // lines of the table that stand above the cursor
}

// Run runs the app that ref names, and returns when the run is over. The exit code is in the error.
func (f *Options) Run(ctx context.Context, s console.Streams, ref string) error {
	if f.Detach != nil && ref == openapp.Stdin {
		return exit.Usagef("run: --detach: a job file on stdin is read once: give the file's path")
	}
	if f.Detach != nil && f.JSON {
		return exit.Usagef("run: --detach with --json: result.json in the work folder has the result when the run ends")
	}
	rules, err := f.Policy.Read()
	if err != nil {
		return err
	}
	if err := openapp.AdmitEnv(rules, f.Env, os.Environ()); err != nil {
		return err
	}
	f.App.Policy = &rules
	f.App.Hadoop = f.Filesystem.Hadoop.Login
	app, err := f.App.Load(ctx, ref, s.Err)
	if err != nil {
		return errors.Join(err, f.refuse(s, ref, err))
	}
	defer app.Close()
	r := &runner{
		flags: f, streams: s, app: app, state: f.State.Resolve(), started: time.Now(),
		log: slog.New(slog.DiscardHandler),
	}
	defer func() {
		for _, undo := range slices.Backward(r.closers) {
			undo()
		}
	}()
	if err := r.check(); err != nil {
		return errors.Join(err, f.refuse(s, ref, err))
	}
	// Each agent would say the same.
	if _, err := prepare.ChooseEngine(ctx, f.Engine, &app.App); err != nil {
		return err
	}
	hostRoot := prepare.RootOfHost() && rules.HostIDs() && !rules.RefusesRoot()
	plan.StartWarnings(app.App, app.ClientVars(), plan.HostFacts{
		HostRoot: hostRoot, MemoryMB: prepare.HostMemoryMB(),
	}).Print(s.Err)
	if f.Detach != nil {
		return r.detach(ctx)
	}
	if err := r.openPage(); err != nil {
		return err
	}
	// of a run that was refused it is empty
	r.closers = append(r.closers, func() { _ = os.Remove(r.state.App(r.appID)) })
	if err := r.makeFolders(); err != nil {
		return err
	}
	if err := r.openRegistry(ctx); err != nil {
		return err
	}
	if err := r.ownWork(); err != nil {
		return err
	}
	if err := r.setAside(); err != nil {
		return err
	}
	if err := r.keepJob(); err != nil {
		return err
	}
	return r.supervise(ctx)
}

// openPage serves the page that was asked for, to the end of all else. Its links are messages: a table leaves them.
func (r *runner) openPage() error {
	if r.flags.Page == nil {
		return nil
	}
	end, err := r.flags.Page(func(link string) { r.say("page %s", link) })
	if err == nil {
		r.closers = append(r.closers, end)
	}
	return err
}

// detach starts the run in a session of its own, and returns when its instances are installed.
func (r *runner) detach(ctx context.Context) error {
	if err := r.makeFolders(); err != nil {
		return err
	}
	_, err := detach.Run{
		App:     r.appID,
		Args:    slices.Insert(slices.Clone(r.flags.Detach), 1, "--app-id="+r.appID), // before a command
		WorkDir: r.workDir, State: r.state,
		Env: slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "MUSTER_AGENT_DETACH=")
		}),
	}.Start(ctx, r.streams)
	return err
}

// Settle resolves AppID and WorkDir, and reports what is wrong with the flags, before the package exists.
func (f *Options) Settle(app appdef.App) error {
	r := &runner{flags: f, app: &openapp.App{App: app}, started: time.Now()}
	if err := r.check(); err != nil {
		return err
	}
	f.AppID = r.appID
	if f.WorkDir == "" {
		dir, err := status.DefaultWorkDir(r.appID)
		if err != nil {
			return err
		}
		f.WorkDir = dir
	}
	f.WorkDir = flags.Absolute(f.WorkDir)
	return nil
}

// check names the run, and what is wrong with the flags, before anything is made.
func (r *runner) check() error {
	r.appID = r.flags.AppID
	if r.appID == "" {
		r.appID = appdef.NameOf(r.app.Name, "-"+letters(6))
	}
	if err := appdef.CheckName("run: --app-id", r.appID); err != nil {
		return exit.With(exit.Usage, err)
	}
	r.runID = strconv.FormatInt(r.started.Unix(), 10) + "-" + letters(4)
	if how := r.flags.Output; !slices.Contains(Outputs(), how) {
		return exit.Usagef("run: --output %q: want one of %s", how, strings.Join(Outputs(), ", "))
	}
	if _, err := flags.Ports(r.flags.Ports); err != nil {
		return err
	}
	filesystem, _, err := r.flags.Filesystem.Resolve() // the agents tell of a warning
	if err != nil {
		return err
	}
	if err := refusePlan(r.app.App, r.app.ClientVars(), filesystem, r.hostFacts()); err != nil {
		return err
	}
	if err := refusePorts(r.app.App); err != nil {
		return err
	}
	if err := r.checkFresh(); err != nil {
		return err
	}
	client, _, err := r.flags.Registry.Open(r.log)
	if err == nil {
		client.Close()
	}
	return err
}

// hostFacts are what each agent of the run will find on this host.
func (r *runner) hostFacts() plan.HostFacts {
	facts := plan.HostFacts{
		Inherited: launcher.Inherit(os.Environ(), r.flags.Env), Given: launcher.Given(os.Environ(), r.flags.Env),
		Shell: prepare.Shell(),
	}
	login := r.flags.Filesystem.Hadoop.Login
	facts.Hadoop = hadoop.FindFacts(cmp.Or(facts.Given["HADOOP_CONF_DIR"], login.Dir()), login, facts.Inherited)
	return facts
}

// makeFolders makes the run's folders.
func (r *runner) makeFolders() error {
	work := r.flags.WorkDir
	if work == "" {
		var err error
		if work, err = status.DefaultWorkDir(r.appID); err != nil {
			return exit.With(exit.Forbidden, err)
		}
	}
	r.workDir = flags.Absolute(work)
	r.logDir = filepath.Join(r.workDir, "log")
	if r.flags.LogDir != "" {
		r.logDir = flags.Absolute(r.flags.LogDir)
	}
	if err := workdir.Refuse(r.workDir, r.app, plan.Instances(&r.app.App)); err != nil {
		return err
	}
	for _, dir := range []string{r.workDir, r.logDir} {
		err := files.MakePrivate(dir)
		if err == nil {
			err = files.Private(dir)
		}
		if err != nil {
			return exit.With(exit.Forbidden, fmt.Errorf("work and log folder: %w", err))
		}
	}
	return exit.With(exit.Forbidden, r.state.Open())
}

// ownWork takes the work folder, or says who has it.
func (r *runner) ownWork() error {
	lock, err := workdir.LockRun(r.workDir)
	if fault.Is(err, registry.ClassHost) {
		return exit.With(exit.Held, err)
	}
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	r.closers = append(r.closers, func() { _ = lock.Release() }) // this process ends
	return nil
}

// openRegistry starts the embedded one, unless --registry or its variable names another.
func (r *runner) openRegistry(ctx context.Context) error {
	if r.flags.Registry.Address == "" {
		if err := r.embed(ctx); err != nil {
			return err
		}
	}
	var err error
	if r.address, err = r.flags.Registry.Resolve(); err != nil {
		return err
	}
	client, _, err := r.flags.Registry.Open(r.log)
	if err != nil {
		return err
	}
	r.client = client
	r.closers = append(r.closers, client.Close)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return apps.RegistryError(r.address, err)
	}
	return r.chooseRun(ctx)
}

// chooseRun goes on with an unfinished run of this name; a finished one is followed by a new one.
func (r *runner) chooseRun(ctx context.Context) error {
	st, err := r.client.Status(ctx, r.appID)
	switch {
	case errors.Is(err, registry.ErrNoApp):
	case err != nil:
		return apps.RegistryError(r.address, err)
	case st.Verdict == nil && st.Live > 0:
		return exit.With(exit.Held, fmt.Errorf("%s is running already: run %s with %d live agents; muster status %s "+
			"says more", r.appID, st.App.Run, st.Live, r.appID))
	case st.Verdict == nil && r.flags.Fresh:
		return exit.With(exit.Held, fmt.Errorf("--fresh: run %s of %s was interrupted and would go on: muster stop %s "+
			"ends it", st.App.Run, r.appID, r.appID))
	case st.Verdict == nil:
		r.runID = st.App.Run
		fmt.Fprintf(r.streams.Err, "%s: run %s was interrupted and goes on\n", r.appID, r.runID)
	}
	return nil
}

// refuseSurvivors: an embedded registry knows nothing of the agents that a killed `muster run` has left and
// that still stop in grace. A new one at the same place would have their processes run beside ours.
func (r *runner) refuseSurvivors(ctx context.Context) error {
	left := apps.AskSockets(ctx, r.state.Sockets(r.appID))
	if len(left) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(left)), ", ")
	return exit.With(exit.Held, fmt.Errorf("%s is running already: its agents of %s still live; muster stop %s ends "+
		"them", r.appID, names, r.appID))
}

func (r *runner) embed(ctx context.Context) error {
	path := r.state.Socket(r.appID, "registry")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if len(path) > status.MaxSocket {
		return exit.Usagef("run: state folder %s: a socket in it would have a path of %d bytes, want at most %d; "+
			"give --state-dir a shorter one", r.state, len(path), status.MaxSocket)
	}
	if err := r.refuseSurvivors(ctx); err != nil {
		return err
	}
	l, err := embedded.ListenUnix(ctx, path)
	if err != nil {
		return exit.With(exit.Held, fmt.Errorf("%s: %w; is it running already?", r.appID, err))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- embedded.Serve(ctx, embedded.Options{Listener: l, Logger: r.log}) }()
	r.closers = append(r.closers, func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(r.streams.Err, "muster: embedded registry:", err)
		}
	})
	r.flags.Registry.Address = registry.SocketAddress(path).String()
	return nil
}

// letters are n random letters and digits.
func letters(n int) string {
	const set = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	for i := range b {
		b[i] = set[int(b[i])%len(set)]
	}
	return string(b)
}

// keepJob writes a job file that came on stdin where the agents find it.
func (r *runner) keepJob() error {
	if r.app.Ref != openapp.Stdin {
		return nil
	}
	path := filepath.Join(r.workDir, "."+pai.JobFile) // beside a person's own job file; it may hold secrets
	if err := os.WriteFile(path, r.app.Source.Job, 0o600); err != nil {
		return exit.With(exit.Forbidden, fmt.Errorf("keep the job file: %w", err))
	}
	r.app.Ref = path
	return nil
}
