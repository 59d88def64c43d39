package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/gpu/grant"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/process"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// agent is one running `muster agent`: its identity and what its rooms share. Fields below the
// mutex are set while it lives.
type agent struct {
	id          identity
	app         *openapp.App
	digest      string
	inc         string
	dns         member.DNS
	facts       proc.Facts
	alloc       plan.Allocation
	origins     map[string]string
	env         map[string]string // what the process inherits
	engine      sandbox.Choice
	policy      policy.Policy
	envImage    map[string]string // what a process in an image inherits
	envGiven    map[string]string // of both, what --env says
	ports       *ports.Instance
	gpus        *grant.Grant
	filesystem  hadoop.DefaultFS // where paths of data without a scheme are
	hadoop      hadoop.Login
	hadoopFound *plan.HadoopFacts // nil: there is none on this host
	times       registry.Times

	registryAddr registry.Address
	client       *consul.Client
	state        status.Dir
	workDir      string
	logDir       string
	log          *slog.Logger
	notify       *notify.Notifier // tells the service manager
	journal      *journal.Journal
	member       *member.Member
	container    *prepare.Container
	logFile      *lateFile
	loop         *machine.Agent
	started      time.Time

	mu          sync.Mutex
	plan        plan.Plan        // resolved
	process     *process.Process // nil until the instance has been prepared
	planDigest  string           // sha256 of the plan as printed
	publisher   string           // URL of the exports, for scripts
	progress    *float64
	data        *dataManager
	checkpoints *checkpointManager
	settle      func() // ends the looks at checkpoints and progress, after a last one
	closers     []func()
}

func (f *agentFlags) prepare(ctx context.Context, s console.Streams, app *openapp.App, notify *notify.Notifier, newRun, policyNamed bool) (*agent, error) {
	late := &lateFile{also: s.Err}
	a := &agent{app: app, log: f.logger(late), logFile: late, notify: notify, loop: machine.NewAgent(), started: time.Now()}
	environ := launcher.Environ(os.Environ())
	found, err := member.DetectLauncher(f.launcher, environ)
	if err != nil {
		return nil, err
	}
	if a.id, err = f.identity(found, app); err != nil {
		return nil, err
	}
	if a.policy, err = policy.Read(f.policy, policyNamed); err != nil {
		return nil, err
	}
	if a.engine, err = prepare.ChooseEngine(ctx, f.engine, &app.App); err != nil {
		return nil, err
	}
	if a.facts, err = proc.SelfFacts(); err != nil {
		return nil, exit.With(exit.Internal, err)
	}
	var warning error
	if a.filesystem, warning, err = f.filesystem.Resolve(); err != nil {
		return nil, err
	}
	a.hadoop = f.filesystem.Hadoop.Login
	if warning != nil {
		a.log.Warn("configuration of hadoop", "err", warning)
	}
	a.digest = appdef.Digest(app.App)
	a.inc = newID()
	a.env, a.envImage = launcher.Inherit(os.Environ(), f.env), launcher.InheritIntoImage(os.Environ(), f.env)
	a.envGiven = launcher.Given(os.Environ(), f.env)
	a.hadoopFound = hadoop.FindFacts(cmp.Or(a.envGiven["HADOOP_CONF_DIR"], a.hadoop.Dir()), a.env)
	portRanges, err := portsFlag(f.ports)
	if err != nil {
		return nil, err
	}
	if app.Settings.Barrier > 0 && f.registry.Barrier == 0 {
		f.registry.Barrier = app.Settings.Barrier.Duration()
	}
	if a.registryAddr, err = f.registry.Resolve(); err != nil {
		return nil, err
	}
	if a.client, a.times, err = f.registry.Open(a.log); err != nil {
		return nil, err
	}
	a.closers = append(a.closers, a.client.Close)
	a.state = f.state.Resolve()
	if err := a.state.Open(); err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	a.clearDead(ctx)
	if err := f.folders(a, found); err != nil {
		return nil, err
	}
	if advice := a.times.Advice(); advice != "" {
		a.log.Warn("times", "cause", advice)
	}
	if err := a.allocate(ctx, f, found); err != nil {
		return nil, err
	}
	a.journal = journal.New(a.log, a.logDir, a.loop.State)
	a.ports = ports.NewInstance(a.id.appID, portRanges, a.log)
	a.gpus = grant.New(a.log, a.alloc.Devices)
	a.container = prepare.New(a.containerConfig(f.strict))
	a.atEnd(a.container.Close)
	a.data = newDataManager(ctx, a.dataConfig())
	a.atEnd(a.data.close)
	a.checkpoints = newCheckpointManager(ctx, a.checkpointConfig())
	a.atEnd(a.checkpoints.close)
	newRun = newRun || found.RunID != "" // the launcher's unique id names a new life as well
	a.member = member.New(a.memberConfig(newRun, member.Listen{Address: f.api, Ports: portRanges}))
	a.atEnd(a.member.Close) // before the client that it asks by
	a.notify.Look(a.outlook)
	if err := member.AwaitRegistry(ctx, a.client, a.registryAddr, a.log); err != nil {
		return a, err
	}
	a.dns, err = member.FindDNS(ctx, a.client, &app.App, a.log)
	return a, err
}

// logger writes the agent's own log.
func (f *agentFlags) logger(to io.Writer) *slog.Logger {
	if f.logJSON {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}

// portsFlag tells a mistyped --ports before anything is made.
func portsFlag(text string) (ports.Ranges, error) {
	asked, err := ports.ParseRanges(text)
	if err != nil {
		return nil, exit.Usagef("--ports: %w", err)
	}
	return asked, nil
}

// folders settles where this agent works and logs.
func (f *agentFlags) folders(a *agent, found launcher.Found) error {
	work := f.workDir
	if work == "" {
		work = found.WorkDir
	}
	if work == "" {
		var err error
		if work, err = status.DefaultWorkDir(a.id.appID); err != nil {
			return exit.With(exit.Forbidden, err)
		}
	}
	a.workDir = flags.Absolute(work)
	if files.Same(a.workDir, a.app.Package.Path) {
		return exit.Usagef("work folder %s is the package itself: give --work-dir another", a.workDir)
	}
	switch {
	case f.logDir != "":
		a.logDir = flags.Absolute(f.logDir)
	case found.LogDir != "":
		a.logDir = filepath.Join(flags.Absolute(found.LogDir), "muster")
	default:
		a.logDir = filepath.Join(a.workDir, "log")
	}
	for _, dir := range []string{a.workDir, filepath.Join(a.workDir, "checkpoint"), a.logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return exit.With(exit.Forbidden, fmt.Errorf("make folder: %w", err))
		}
	}
	return nil
}

func (a *agent) close() {
	for _, undo := range slices.Backward(a.closers) {
		undo()
	}
}

// clearDead removes what killed agents of this host have left.
func (a *agent) clearDead(ctx context.Context) { prepare.ClearDead(ctx, a.state, a.facts, a.log) }
