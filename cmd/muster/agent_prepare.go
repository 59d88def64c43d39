package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/route"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/stage"
	"github.com/muster-agent/muster/shim/status"
)

// agent is one running `muster agent`: its identity and what its rooms share. Fields below the
// mutex are set while it lives.
type agent struct {
	id      identity
	app     *loaded
	digest  string
	inc     string
	domain  string // where Consul answers DNS; "": nobody has asked
	noDNS   bool   // nothing does: the registry is not Consul
	facts   sandbox.Facts
	alloc   plan.Allocation
	origins map[string]string
	env     map[string]string // what the process inherits
	engine  sandbox.Choice
	policy  policy
	// requireLimits refuses to run where a limit is not enforced.
	requireLimits bool
	envImage      map[string]string // what a process in an image inherits
	envGiven      map[string]string // of both, what --env says
	ports         string
	filesystem    filesystem // where paths of data without a scheme are
	hadoop        hadoopFlags
	hadoopFound   *plan.HadoopFacts // nil: there is none on this host
	times         registry.Times
	newRun        bool

	registryAddr string
	client       *consul.Client
	state        status.Dir
	workDir      string
	logDir       string
	log          *slog.Logger
	notify       *notifier // tells the service manager
	absent       absentees // whom the barrier waits for
	logFile      *lateFile
	loop         *shim.Agent
	started      time.Time
	standing     standing

	mu         sync.Mutex
	seat       *consul.Seat
	fence      *fence        // from the claim on
	waits      []status.Wait // whom it waits for as the conductor
	plan       plan.Plan     // resolved
	planDigest string        // sha256 of the plan as printed
	held       *ports.Held
	portOf     map[string]int
	marks      map[string]int64  // sizes of the logs when the process was started
	startEnv   map[string]string // of the last start; nil: none yet
	guard      *sandbox.Guard
	// guardGone: somebody killed it; the next rebinding parks another.
	guardGone bool
	// guardEnds is closed when the guard is gone that has ended its process by itself; nil: it has not.
	guardEnds chan struct{}
	boundary  string // name of the cgroup; "" until it is taken
	image     rootImage
	user      *plan.UserFacts // nil: the agent's own
	gpus      grantedGPUs
	// gpuSuspect: a device asked for a reset since it was last looked at.
	gpuSuspect bool
	memory     int           // MB, the limit in force
	starved    int           // ends for want of memory
	over       chan struct{} // closed when the attempt under way is over
	sides      *sideGroup    // of the last start; nil: none
	watch      *watch        // of the start under way; nil: no script runs it
	task       int           // commands given so far
	statusTurn sync.Mutex    // one STATUS at a time
	publisher  string        // URL of the exports, for scripts
	discovery  *discovery    // in Consul; nil: there is nothing to be found, or not yet
	apiListen  string        // where other hosts are answered; "": where it is needed, at a port of the range
	peerAddr   string        // host:port of it; "": nowhere
	blamed     blame         // what was seen to go wrong with it from outside
	roster     registry.Roster
	rosterAt   []byte // the sealed bytes, as the process finds them
	progress   *float64
	since      time.Time
	feeding    *feeding                // what the process is fed; nil: nothing
	gathered   *gathered               // what the process says, where that is an output; nil: it has not begun
	tickets    *tickets                // the process's own; nil: it needs none
	inputList  string                  // what the process is told of its inputs; empty: nothing
	callOff    context.CancelCauseFunc // gives up the leaving of outputs
	leaving    bool                    // the process is over, its outputs are not where they belong yet
	moving     string                  // how far the files are that are brought or left now; "": there are none
	owed       []owedOutput            // what room was made for and is not settled yet
	founded    time.Time               // of the app, for an agent that finds its run's verdict
	undone     error                   // what the job's success wants of this agent and it could not do
	saveHeard  int                     // the last interim save that was heard of
	saveTurn   sync.Mutex              // one interim save at a time
	saved      map[string]stage.Seen   // by output, as the last save has left it; whose turn it is has it
	saves      saves
	warnings   warnings
	near       *neighbours // the hosts of the others
	settle     func()      // ends the looks at checkpoints and progress, after a last one
	closers    []func()
}

func (f *agentFlags) prepare(ctx context.Context, s streams, app *loaded, notify *notifier, newRun, policyNamed bool) (*agent, error) {
	late := &lateFile{also: s.err}
	a := &agent{app: app, log: f.logger(late), logFile: late, notify: notify, loop: shim.NewAgent(), newRun: newRun, started: time.Now(), standing: standingOf(), ports: f.ports, apiListen: f.api, requireLimits: f.strict}
	a.near = &neighbours{agent: a, reached: map[string]bool{}, news: make(chan struct{}, 1)}
	a.near.write = a.near.record
	environ := launcher.Environ(os.Environ())
	found, err := f.detect(environ)
	if err != nil {
		return nil, err
	}
	if a.id, err = f.identity(found, app); err != nil {
		return nil, err
	}
	a.newRun = newRun || found.RunID != "" // the launcher's unique id names a new life as well
	if a.policy, err = readPolicy(f.policy, policyNamed); err != nil {
		return nil, err
	}
	if a.engine, err = chooseEngine(ctx, f.engine, app); err != nil {
		return nil, err
	}
	if a.facts, err = sandbox.SelfFacts(); err != nil {
		return nil, withCode(shim.CodeInternal, err)
	}
	var warning error
	if a.filesystem, warning, err = f.filesystem.resolve(); err != nil {
		return nil, err
	}
	a.hadoop = f.filesystem.hadoop
	if warning != nil {
		a.log.Warn("configuration of hadoop", "err", warning)
	}
	a.digest = appdef.Digest(app.App)
	a.inc = newID()
	a.env, a.envImage = launcher.Inherit(os.Environ(), f.env), launcher.InheritIntoImage(os.Environ(), f.env)
	a.envGiven = launcher.Given(os.Environ(), f.env)
	a.hadoopFound = hadoopFacts(cmp.Or(a.envGiven["HADOOP_CONF_DIR"], a.hadoop.dir()), a.env)
	if err := portsFlag(f.ports); err != nil {
		return nil, err
	}
	if app.Settings.Barrier > 0 && f.registry.barrier == 0 {
		f.registry.barrier = app.Settings.Barrier.Duration()
	}
	a.registryAddr = f.registry.resolve()
	if a.client, a.times, err = f.registry.open(a.log); err != nil {
		return nil, err
	}
	a.closers = append(a.closers, a.client.Close)
	a.state = f.state.resolve()
	if err := a.state.Open(); err != nil {
		return nil, withCode(shim.CodeForbidden, err)
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
	a.atEnd(a.absent.end) // before the client that it asks by
	a.notify.look(a.outlook)
	if err := a.reachRegistry(); err != nil {
		return a, err
	}
	return a, a.naming(ctx)
}

// logger writes the agent's own log.
func (f *agentFlags) logger(to io.Writer) *slog.Logger {
	if f.logJSON {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}

// detect asks the launcher's variables, unless --launcher overrules.
func (f *agentFlags) detect(environ map[string]string) (launcher.Found, error) {
	facts := hostFacts()
	switch f.launcher {
	case "":
		return launcher.Detect(environ, facts), nil
	case string(launcher.Shell):
		return launcher.Detect(map[string]string{}, launcher.Facts{User: facts.User, Envelope: launcher.Detect(environ, facts).Allocation.Envelope}), nil
	}
	return launcher.Found{}, usage("--launcher %q: want shell, or nothing for the one that is recognised", f.launcher)
}

// hostFacts are what the variables do not say of where this process runs.
func hostFacts() launcher.Facts {
	facts := launcher.Facts{}
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		facts.Cgroup = string(text)
	}
	if u, err := user.Current(); err == nil {
		facts.User = u.Username
	}
	if self, err := sandbox.SelfFacts(); err == nil {
		facts.Machine = self.Machine
	}
	if tree, err := cgroup.Discover(cgroup.Host{}); err == nil { // without one there is no limit to be seen
		facts.Envelope.MemoryMB, facts.Envelope.VCores = tree.Envelope()
	}
	return facts
}

// chooseEngine takes the best engine that this host permits, or the one that is insisted on.
func chooseEngine(ctx context.Context, name string, app *loaded) (sandbox.Choice, error) {
	if err := engineFlag(name); err != nil {
		return sandbox.Choice{}, err
	}
	ownRoot := slices.ContainsFunc(app.Components, func(c appdef.Component) bool { return c.Limits.Image != "" })
	choice, err := sandbox.Choose(ctx, name, ownRoot)
	if err != nil {
		return choice, withCode(shim.CodeForbidden, fmt.Errorf("--engine %s: %w", name, err))
	}
	return choice, nil
}

// engineFlag tells a mistyped --engine before anything is made.
func engineFlag(name string) error {
	if name != "auto" && !slices.Contains(sandbox.EngineNames(), name) {
		return usage("--engine %q: want auto, %s", name, strings.Join(sandbox.EngineNames(), ", "))
	}
	return nil
}

// portsFlag tells a mistyped --ports before anything is made.
func portsFlag(text string) error {
	if _, err := ports.ParseRanges(text); err != nil {
		return usage("--ports: %w", err)
	}
	return nil
}

// folders settles where this agent works and logs.
func (f *agentFlags) folders(a *agent, found launcher.Found) error {
	work := f.workDir
	if work == "" {
		work = found.WorkDir
	}
	if work == "" {
		var err error
		if work, err = defaultWorkDir(a.id.appID); err != nil {
			return withCode(shim.CodeForbidden, err)
		}
	}
	a.workDir = absolute(work)
	if same(a.workDir, a.app.pkg.Path) {
		return usage("work folder %s is the package itself: give --work-dir another", a.workDir)
	}
	switch {
	case f.logDir != "":
		a.logDir = absolute(f.logDir)
	case found.LogDir != "":
		a.logDir = filepath.Join(absolute(found.LogDir), "muster")
	default:
		a.logDir = filepath.Join(a.workDir, "log")
	}
	for _, dir := range []string{a.workDir, filepath.Join(a.workDir, "checkpoint"), a.logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return withCode(shim.CodeForbidden, fmt.Errorf("make folder: %w", err))
		}
	}
	return nil
}

// allocate completes what the launcher granted: host, kill window, client variables.
func (a *agent) allocate(ctx context.Context, f *agentFlags, found launcher.Found) error {
	a.alloc, a.origins = found.Allocation, found.Origins
	if a.origins == nil {
		a.origins = map[string]string{}
	}
	for _, note := range found.Notes {
		a.log.Warn("launcher", "name", a.alloc.Launcher, "note", note)
	}
	if err := a.chooseHost(ctx, f.host, found); err != nil {
		return err
	}
	for flag, value := range map[string]string{"component": f.component, "app_id": f.appID} {
		if value != "" {
			a.origins[flag] = "--" + strings.ReplaceAll(flag, "_", "-")
		}
	}
	switch {
	case f.index >= 0:
		a.origins["index"] = "--index"
	case a.id.instance == nil:
		a.origins["index"] = "claimed"
	}
	if f.kill > 0 {
		a.alloc.KillWindow = f.kill.Seconds()
		a.origins["kill_window"] = "--kill-window"
	}
	if a.alloc.Vars == nil {
		a.alloc.Vars = map[string]string{}
	}
	maps.Copy(a.alloc.Vars, a.app.clientVars())
	return nil
}

// chooseHost settles the address that this host's exports have.
func (a *agent) chooseHost(ctx context.Context, flag string, found launcher.Found) error {
	choices := hostChoices(ctx, found)
	choices.Flag, choices.Loopback = flag, strings.HasPrefix(a.registryAddr, "unix:")
	if _, address, ok := strings.Cut(a.registryAddr, "://"); ok {
		choices.Source, _ = route.Source(address) // then another source is taken
		choices.ConsulAgent = a.consulAgent()
	}
	host, err := launcher.ChooseHost(choices)
	if err != nil && loopback(choices.Source) { // no network at all: the whole gang is on this machine
		host.Address, host.Origin, err = "127.0.0.1", "registry on the loopback, and no other address", nil
		a.log.Warn("no address but the loopback: agents on other hosts cannot be peers")
	}
	if err != nil {
		return withCode(shim.CodeUsage, err)
	}
	if host.Passed != "" {
		a.log.Warn("launcher's name of this host is not used", "why", host.Passed, "host", host.Address, "from", host.Origin)
		host.Origin += ": " + host.Passed
	}
	a.alloc.Host, a.origins["host"] = host.Address, host.Origin
	return nil
}

// hostChoices are what the launcher and this host's routes say of its address.
func hostChoices(ctx context.Context, found launcher.Found) launcher.HostChoices {
	c := launcher.HostChoices{Launcher: found.Allocation.Host, LauncherFrom: found.Origins["host"], DefaultRoute: route.Default()}
	if c.Launcher != "" {
		c.LauncherIs = route.Lookup(ctx, c.Launcher)
	}
	return c
}

// consulAgent is the advertised address of a node-local Consul agent; empty if it does not say.
func (a *agent) consulAgent() string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	addr, err := a.client.AgentAddress(ctx)
	if err != nil {
		return ""
	}
	return addr
}

// reachRegistry is patient with a registry that starts together with its gang.
func (a *agent) reachRegistry() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	var last error // the end of our own patience is no cause
	for {
		err := a.client.Ping(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return withCode(shim.CodeRegistry, fmt.Errorf("registry %s: %w; %s", a.registryAddr, cmp.Or(last, err), registryRemedy))
		case !errors.Is(err, registry.ErrUnreachable):
			return withCode(shim.CodeRegistry, fmt.Errorf("registry %s: %w", a.registryAddr, err))
		case last == nil:
			a.log.Warn("registry does not answer yet, trying on", "registry", a.registryAddr, "patience", startPatience, "err", err)
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(startPoll):
		}
	}
}

// How long an agent waits for the registry at its start.
const (
	startPatience = 15 * time.Second
	startPoll     = 300 * time.Millisecond
)

// request is the plan's question for an instance.
func (a *agent) request(in registry.Instance) plan.Request {
	request := plan.Request{
		AppID: a.id.appID, Run: a.id.run, Starts: true, Digest: a.digest, Component: in.Component, Index: in.Index,
		Allocation: a.alloc, Inherited: a.env, Given: a.envGiven, Shell: shell(), Origins: a.origins,
		Engine: engineChoice(a.engine), Instances: a.countsInForce(), Hadoop: a.hadoopFound,
	}
	request.Domain, request.NoDNS = a.domain, a.noDNS
	a.filesystem.into(&request)
	return request
}

// me is what the agent says of itself when it joins.
func (a *agent) me() (registry.Me, error) {
	request := a.request(registry.Instance{})
	facts := plan.Gang(a.app.App, request)
	facts.Times, facts.Barrier = a.times, a.times.Barrier
	def, err := appdef.Encode(a.app.App)
	if err != nil {
		return registry.Me{}, err
	}
	hostname, _ := os.Hostname() // for display
	now := stamp(time.Now())
	me := registry.Me{
		App: a.id.appID, Run: a.id.run, NewRun: a.newRun, Digest: a.digest, Facts: facts,
		Launcher: launcher.Name(a.alloc.Launcher).Relaunches(), Instance: a.id.instance,
		Record: registry.AppRecord{Version: 1, Run: a.id.run, Digest: a.digest, Def: def, Counts: a.app.Counts(), Created: now, By: a.inc, Token: newToken()},
		Member: registry.Member{
			Version: 1, Run: a.id.run, Inc: a.inc, Addr: a.alloc.Host, Host: hostname,
			Machine: a.facts.Machine, Boot: a.facts.Boot, PidNS: a.facts.PidNS, Pid: a.facts.PID, Start: a.facts.Start,
			Digest: a.digest, Launcher: a.alloc.Launcher, ContainerID: a.alloc.ContainerID, Slot: a.id.found.Slot, Since: now,
		},
	}
	if me.Instance != nil {
		return me, nil
	}
	for _, in := range plan.Instances(&a.app.App) {
		if a.id.component == "" || in.Component == a.id.component {
			me.Claimable = append(me.Claimable, in)
		}
	}
	if a.id.rank >= 0 && a.id.rank < len(me.Claimable) && a.id.component == "" {
		me.Instance = &me.Claimable[a.id.rank] // Slurm's PROCID is the rank
	}
	return me, nil
}

func (a *agent) close() {
	for _, undo := range slices.Backward(a.closers) {
		undo()
	}
}

// alive tells whether a holder on this host still lives.
func (a *agent) alive(m registry.Member) (gone bool, why string) {
	live, err := sandbox.Host{}.Alive(sandbox.Facts{Machine: m.Machine, Boot: m.Boot, PidNS: m.PidNS, PID: m.Pid, Start: m.Start})
	if err != nil {
		return false, err.Error()
	}
	return live == sandbox.Dead, live.String()
}

// clean kills what a dead agent of this index left on this host. Its work folder may have been another than this agent's: YARN and
// others give each container its own.
func (a *agent) clean(ctx context.Context, in registry.Instance, m registry.Member) error {
	left := sandbox.Leftover{Boot: m.Boot, PidNS: m.PidNS}
	left.Env = map[string]string{ // finds also what left the tree
		"MUSTER_APP_ID": a.id.appID, "MUSTER_INSTANCE": in.String(), "MUSTER_WORK_DIR": cmp.Or(m.WorkDir, filepath.Join(a.workDir, in.String())),
	}
	if m.Guard != nil {
		left.Guard = sandbox.ProcessID{PID: m.Guard.Pid, Start: m.Guard.Start}
	}
	err := sandbox.Host{}.KillOrphans(ctx, left)
	if err != nil {
		a.log.Warn("clear what the last agent left", "pid", m.Pid, "err", err)
	}
	a.clearDead(ctx) // it has died since this agent looked
	return err
}

// answerPatience bounds the asking of a holder whether it is there.
const answerPatience = 2 * time.Second

// answers asks the holder's agent: by its socket on this host, else where it listens for its peers.
func (a *agent) answers(ctx context.Context, m registry.Member, token string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	is := func(c *status.Client) bool {
		defer c.Close()
		st, err := c.State(ctx)
		return err == nil && st.Inc == m.Inc
	}
	return m.Machine == a.facts.Machine && m.API != "" && is(status.Dial(m.API)) || m.Peer != "" && is(status.DialPeer(m.Peer, token))
}

func shell() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(path); err == nil {
			return "bash"
		}
	}
	return "sh"
}

// engineChoice tells the plan what this engine cannot hold, by asking it about every limit at once.
func engineChoice(c sandbox.Choice) plan.EngineChoice {
	all := plan.Limits{MemoryMB: 1, HighMB: 1, SwapMB: 1, VCores: 1, CPUHard: true, Pids: 1, ShmMB: 1, GPUs: 1, GPUType: "any"}
	choice := plan.EngineChoice{Name: c.Engine.Name(), Why: c.Why, Cannot: map[string]string{}}
	if slices.Contains(c.Standing.Tree.Missing(), memoryHigh) || c.Engine.Name() == sandbox.NameProcess {
		choice.Cannot["high_mb"] = "no " + memoryHigh + " here: it came with cgroup v2"
	}
	if gpuHelper() == nil {
		choice.Cannot["gpu_memory_mb"] = "muster-gpu, which watches it, is not beside muster"
	}
	for _, u := range c.Engine.Unenforced(all) {
		choice.Cannot[u.Limit] = u.Why
	}
	return choice
}

// memoryHigh is the file of cgroup v2 behind muster.memory.high.
const memoryHigh = "memory.high"

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
