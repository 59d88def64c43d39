package shim

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/data/manager"
	"github.com/muster-agent/muster/shim/data/stores"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/gpu/grant"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/process"
	"github.com/muster-agent/muster/shim/progress"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/secret"
	"github.com/muster-agent/muster/shim/status"
)

// agent is one running agent: its identity, its host, and its rooms. Fields below the mutex are set while it lives.
type agent struct {
	self
	output Output
	host
	inherited
	folders
	rooms

	mu         sync.Mutex
	plan       plan.Plan        // resolved
	planDigest string           // sha256 of the plan as printed
	process    *process.Process // one that never runs until the instance has been prepared
	ssh        *sshServer       // nil until the instance has been prepared
	publisher  string           // URL of the exports, for scripts
	advance
	settle  func()       // ends the watching of checkpoints and progress, after a last look
	hurried *stopRequest // that came after the machine's end; nil: none has
	closers []func()
	keeping
}

// advance is how far the process has come.
type advance struct {
	progress progress.Reader
	resumed  *int64     // step that the current attempt resumed from
	silent   *time.Time // when the process last showed a sign of life; nil: it does
}

// keeping is what an agent has to do with the history store.
type keeping struct {
	callOff   func() // ends what is being written; nil: nothing is
	conducted bool   // the agent was the conductor, for a while at least

	historyTried sync.Once
}

// self is which agent this is, of which app.
type self struct {
	id      identity
	app     *openapp.App
	digest  string // of the definition
	inc     string // incarnation
	started time.Time
}

// host is what the launcher granted and what this host permits.
type host struct {
	facts   proc.Facts
	alloc   plan.Allocation
	origins map[string]string
	engine  sandbox.Choice
	policy  policy.Policy
	dns     member.DNS
}

// inherited is what the process gets from the agent's environment.
type inherited struct {
	env         map[string]string
	envImage    map[string]string // to a process in an image
	envGiven    map[string]string // the part that --env names
	filesystem  hadoop.DefaultFS  // where paths of data without a scheme are
	hadoop      hadoop.Login
	hadoopFound *plan.HadoopFacts // nil: none on this host
}

// folders are where the agent works on this host.
type folders struct {
	state           status.Dir
	workDir, logDir string // of the run
	logFile         *lateFile
}

// rooms do the work; each owns its fields, its lock and its goroutines.
type rooms struct {
	log          *slog.Logger
	loop         *machine.Agent
	registryAddr registry.Address
	hidden       *mask.Set // secret values, for what is written
	client       *consul.Client
	times        registry.Times
	member       *member.Member
	stores       *stores.Stores
	container    *prepare.Container
	ports        *ports.Instance
	gpus         *grant.Grant
	data         *manager.Manager
	checkpoints  *checkpoint.Manager
	journal      *journal.Journal
	notify       *notify.Notifier // tells the service manager
	waits        *barrierLog
	samples      *samples.Keeper
	teller       *teller // tells the operator's notifier
}

// prepareAgent makes an agent, up to the registry's first answer. Of one that cannot be made nothing stays.
func prepareAgent(ctx context.Context, o Options, app *openapp.App, manager *notify.Notifier) (*agent, error) {
	hidden := &mask.Set{} // before the first line of the log
	hidden.AddNamed(launcher.Environ(os.Environ()))
	hidden.AddNamed(launcher.Given(os.Environ(), o.Env))
	for _, c := range app.App.Components {
		hidden.AddNamed(c.Settings.Env)
		hidden.AddNamed(c.Config)
	}
	late := newLateFile(o.Output.To, o.Output.dropped)
	a := &agent{
		self: self{app: app, started: time.Now()}, output: o.Output,
		host: host{policy: o.Policy}, inherited: inherited{hadoop: o.Hadoop},
		folders: folders{state: o.Folders.State, logFile: late},
		rooms: rooms{
			log: o.Output.logger(hidden.Writer(late)), hidden: hidden, loop: machine.NewAgent(), notify: manager,
			registryAddr: o.Registry.Address, times: o.Registry.Times,
		},
	}
	if err := a.prepare(ctx, o); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *agent) prepare(ctx context.Context, o Options) error {
	found, err := member.DetectLauncher(o.Launcher, launcher.Environ(os.Environ()))
	if err != nil {
		return err
	}
	if a.id, err = o.Name.identity(found, a.app); err != nil {
		return err
	}
	if err := a.surroundings(ctx, o); err != nil {
		return err
	}
	if err := a.open(ctx, o, found); err != nil {
		return err
	}
	if err := a.allocate(ctx, o, found); err != nil {
		return err
	}
	newRun := o.Name.NewRun || found.RunID != "" // the launcher's unique id names a new run as well
	a.makeRooms(ctx, o, newRun)
	a.notify.Look(a.managerMessage)
	if err := member.AwaitRegistry(ctx, a.client, a.registryAddr, a.log); err != nil {
		return err
	}
	a.dns, err = member.FindDNS(ctx, a.client, &a.app.App, a.log)
	return err
}

// surroundings finds out what this host permits and what its environment says.
func (a *agent) surroundings(ctx context.Context, o Options) (err error) {
	if a.engine, err = prepare.ChooseEngine(ctx, o.Engine, &a.app.App); err != nil {
		return err
	}
	if a.facts, err = proc.SelfFacts(); err != nil {
		return exit.With(exit.Internal, err)
	}
	var warning error
	if a.filesystem, warning, err = hadoop.FindDefaultFS(o.DefaultFS, o.Hadoop); err != nil {
		return err
	}
	if warning != nil {
		a.log.Warn("configuration of hadoop", "err", warning)
	}
	a.digest, a.inc = appdef.DigestIn(a.app.App, registry.Spoken().Min), NewID()
	a.env, a.envImage = launcher.Inherit(os.Environ(), o.Env), launcher.InheritIntoImage(os.Environ(), o.Env)
	a.envGiven = launcher.Given(os.Environ(), o.Env)
	if o.Policy.Packages.RequireSignature {
		a.env["HOME"] = ownHome()
	}
	a.hadoopFound = hadoop.FindFacts(cmp.Or(a.envGiven["HADOOP_CONF_DIR"], a.hadoop.Dir()), a.hadoop, a.env)
	if a.times.Barrier == 0 {
		a.times.Barrier = max(a.app.Settings.Barrier.Duration(), 0)
	}
	return nil
}

// open opens the registry's client, the state folder and the folders of the run.
func (a *agent) open(ctx context.Context, o Options, found launcher.Found) (err error) {
	if a.client, err = consul.Open(consul.Config{Address: a.registryAddr, Times: a.times, Logger: a.log}); err != nil {
		return exit.With(exit.Usage, err)
	}
	a.atEnd(a.client.Close)
	if err := a.state.Open(); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	a.clearDead(ctx)
	if swept, err := secret.Sweep(); err != nil || len(swept) > 0 {
		a.log.Info("secrets of killed agents removed", "folders", len(swept), "err", err)
	}
	if err := a.makeFolders(o.Folders, found); err != nil {
		return err
	}
	if advice := a.times.Advice(); advice != "" {
		a.log.Warn("times of the registry are unusual", "cause", advice)
	}
	return nil
}

// makeRooms makes the rooms. They are closed in the reverse order.
func (a *agent) makeRooms(ctx context.Context, o Options, newRun bool) {
	a.process = process.New(ctx, process.Config{})
	a.journal = journal.New(a.log, a.logDir, a.loop.State, a.hidden.Hide)
	a.atEnd(a.journal.Close)
	a.makeTeller(ctx)
	a.ports = ports.NewInstance(a.id.appID, o.Ports, a.log)
	a.gpus = grant.New(a.log, a.alloc.Devices)
	a.samples = samples.New(a.reading, time.Now)
	a.stores = a.storesOf()
	a.container = prepare.New(a.containerConfig(o.RequireLimits))
	a.atEnd(a.container.Close)
	a.data = manager.New(ctx, a.dataConfig())
	a.atEnd(a.data.Close)
	a.checkpoints = checkpoint.New(ctx, a.checkpointConfig())
	a.atEnd(a.checkpoints.Close)
	a.member = member.New(ctx, a.memberConfig(newRun, o.Build, member.Listen{Address: o.API, Ports: o.Ports}))
	a.atEnd(a.member.Close) // before the client that it uses
}

// makeFolders chooses and makes where this agent works and logs.
func (a *agent) makeFolders(f Folders, found launcher.Found) (err error) {
	work := cmp.Or(f.Work, found.WorkDir)
	if work == "" {
		if work, err = status.DefaultWorkDir(a.id.appID); err != nil {
			return exit.With(exit.Forbidden, err)
		}
	}
	a.workDir = absolute(work)
	if files.Same(a.workDir, a.app.Package.Path) {
		return exit.Usagef("work folder %s is the package itself: give --work-dir another", a.workDir)
	}
	switch {
	case f.Log != "":
		a.logDir = absolute(f.Log)
	case found.LogDir != "":
		a.logDir = filepath.Join(absolute(found.LogDir), "muster")
	default:
		a.logDir = filepath.Join(a.workDir, "log")
	}
	if err := a.safeFolders(f, found); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return nil
}

// safeFolders makes the folders, and refuses those in which another user could put something in the place of what is
// the agent's. What a launcher has made for the agent lies in folders of the launcher's own.
func (a *agent) safeFolders(f Folders, found launcher.Found) error {
	if err := ownVolume(found.Volume); err != nil {
		return err
	}
	if err := files.MakePrivate(a.workDir); err != nil {
		return err
	}
	safe := files.Private
	if f.Work == "" && found.WorkDir != "" {
		safe = files.Tighten
	}
	err := safe(a.workDir)
	for _, name := range []string{"package", "root"} { // whose content agents go by
		if err == nil {
			err = files.Laid(filepath.Join(a.workDir, name))
		}
	}
	if err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(a.workDir, "checkpoint"), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := a.safeLogs(f, found); err != nil {
		return fmt.Errorf("log folder: %w", err)
	}
	return nil
}

// ownVolume takes a volume from others. Kubernetes makes an empty folder root's and writable by all: an agent that is
// root refuses what lies in such a one.
func ownVolume(dir string) error {
	if dir == "" || os.Geteuid() != 0 || !files.OpenToOthers(dir) {
		return nil
	}
	return files.Tighten(dir)
}

// safeLogs is safeFolders of the log folder.
func (a *agent) safeLogs(f Folders, found launcher.Found) error {
	if f.Log == "" && found.LogDir != "" { // the launcher collects what is in it
		return a.logsOfLauncher(absolute(found.LogDir))
	}
	if err := files.MakePrivate(a.logDir); err != nil {
		return err
	}
	if f.Log == "" && f.Work == "" && found.WorkDir != "" {
		return files.Laid(a.logDir)
	}
	return files.Private(a.logDir)
}

// logsOfLauncher makes the log folder in a launcher's. Nomad lets every user write to that: the processes of an agent
// that is root could put a link in the place of the agent's own.
func (a *agent) logsOfLauncher(top string) error {
	err := os.MkdirAll(top, 0o755)
	if err == nil && os.Geteuid() == 0 && files.OpenToOthers(top) {
		err = files.Tighten(top)
	}
	if err == nil {
		err = os.MkdirAll(a.logDir, 0o755)
	}
	if err != nil {
		return err
	}
	return files.Laid(a.logDir)
}

// absolute is an absolute path, if the current folder is known.
func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

func (a *agent) close() {
	for _, undo := range slices.Backward(a.closers) {
		undo()
	}
	a.logFile.close()
}

// killLeft kills what an agent of the instance left on this host.
func (a *agent) killLeft(ctx context.Context, in registry.Instance, inc string) (known bool, err error) {
	return prepare.KillLeft(ctx, prepare.Left{
		State: a.state, App: a.id.appID, Instance: in, Inc: inc, Folder: filepath.Join(a.workDir, in.String()),
	}, a.log)
}

// clearDead removes the remains of killed agents of this host.
func (a *agent) clearDead(ctx context.Context) { prepare.ClearDead(ctx, a.state, a.facts, a.log) }
