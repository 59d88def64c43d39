package shim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/data/manager"
	"github.com/muster-agent/muster/shim/data/stores"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/wording"
	"github.com/muster-agent/muster/shim/workdir"
)

// stageRoom prepares the container of the index that was claimed.
type stageRoom struct{ *agent }

// Do plans, takes ports, stages files, starts the guard and opens the local API.
func (r stageRoom) Do(ctx context.Context, _ machine.Effect, s machine.State) (machine.Event, bool) {
	r.logFile.open(filepath.Join(r.logDir, s.Instance.String(), "agent.log"), r.started, r.log)
	r.linkLogs(s.Instance)
	r.historyTried.Do(func() { go r.tryHistory(context.WithoutCancel(ctx)) })
	r.rest(ctx)
	p, err := r.stage(ctx, s.Instance)
	if err != nil {
		return machine.Event{
			Kind: machine.StageFailed, Class: stageClass(err), Cause: wording.Short(err.Error()),
			Exit: exitOf(err),
		}, true
	}
	r.log.Info("confined", "engine", p.Engine.Name, "why", p.Engine.Why)
	for _, w := range plan.OwnWarnings(r.app.App, p.Warnings) {
		r.log.Warn("planned with a warning", "warning", w.String())
	}
	for _, u := range p.Engine.Unenforced {
		r.log.Warn("limit is not enforced", "limit", u.Limit, "cause", u.Why)
	}
	debug.FreeOSMemory() // the memory of staging; from here on the agent waits
	return machine.Event{Kind: machine.Staged, Policy: r.policy(p)}, true
}

// rest waits out the pause of a retry: what could not be brought a moment ago is not asked for again at once. The agent
// is there meanwhile, so that a stop is heard.
func (r stageRoom) rest(ctx context.Context) {
	d := r.member.Membership().Directive()
	left := time.Until(d.At.Add(d.Pause()))
	if d.Retries.Gen != d.Gen || d.Act != registry.ActWait || left <= 0 { // who joins others that run waits for nobody
		return
	}
	left = min(left, d.Pause()) // clocks of hosts may differ
	r.log.Info("the retry waits before it stages", "pause", left.Round(time.Second))
	_ = wait.For(ctx, left) // staging sees that it is over
}

// tryHistory tells at the start what would else be known at the end alone: that a history store of this host cannot be
// written. One of a network may be back by then. Nobody waits for it: the folder may be a share that hangs.
func (a *agent) tryHistory(ctx context.Context) {
	rules := a.policy.History
	if store.SchemeOf(rules.Store) != "file:" {
		return
	}
	s := history.New(rules.Store, a.hadoop.Stores(nil))
	defer s.Close()
	if _, err := s.Writer(ctx, a.id.appID, "", rules.Readers == policy.ReadersGroup); err != nil {
		a.log.Warn("the run will not be kept", "store", rules.Store, "err", err)
		a.journal.Warn(warnHistory, fmt.Sprintf("this run will not be in the history store: %v", err))
	}
}

// stageClass is the class of a failed staging.
func stageClass(err error) registry.Class {
	class := fault.ClassOf(err)
	switch {
	case class != "":
		return class
	case errors.Is(err, fs.ErrPermission):
		return registry.ClassNotPermitted
	case errors.Is(err, ports.ErrNone):
		return registry.ClassNetwork
	}
	return registry.ClassData
}

func (r stageRoom) stage(ctx context.Context, in registry.Instance) (plan.Plan, error) {
	p, err := r.container.Complete(ctx, r.request(in), r.previousPorts())
	if err != nil {
		return plan.Plan{}, err
	}
	digest := sha256.Sum256(p.JSON())
	p = plan.Resolve(p, plan.Dirs{Work: r.workDir, Log: r.logDir})
	if err := r.container.Permitted(p); err != nil {
		return plan.Plan{}, err
	}
	if err := r.container.TakeFolder(ctx, in); err != nil {
		return plan.Plan{}, err
	}
	if err := r.publish(ctx); err != nil {
		return plan.Plan{}, err
	}
	if err := r.layOut(ctx, p, in); err != nil {
		return plan.Plan{}, err
	}
	if err := r.checkpoints.Prepare(ctx, p, in); err != nil {
		return plan.Plan{}, manager.Fault(err)
	}
	if err := r.container.MakeSecrets(p, in); err != nil {
		return plan.Plan{}, err
	}
	r.mu.Lock()
	r.plan, r.planDigest = p, hex.EncodeToString(digest[:])
	r.mu.Unlock()
	serve, err := r.open(ctx, in)
	if err != nil {
		return plan.Plan{}, err
	}
	for kind, text := range r.container.Warnings(p, in) { // once the socket is the process's
		r.journal.Warn(kind, text)
	}
	r.begin(ctx, p, in)
	if err := r.runs().StartGuard(ctx); err != nil {
		return plan.Plan{}, err
	}
	logDir := filepath.Join(r.logDir, in.String())
	r.work(ctx, p, logDir)
	serve(logDir)
	r.atEnd(r.member.Withdraw)
	if err := r.member.ServePeers(ctx, p, r.source(logDir)); err != nil {
		return plan.Plan{}, err
	}
	r.member.Discover(ctx, p)
	r.ssh.open(ctx)
	return p, r.runs().Install(ctx)
}

// previousPorts are the ports that the index had before, which its next holder should have: a member that peers find by
// DNS name keeps its row on any host, if its ports are the same.
func (r stageRoom) previousPorts() map[string]int {
	if before := r.member.Previous(); before != nil && (before.Machine == r.facts.Machine || r.dns.Domain != "") {
		return before.Ports
	}
	return nil
}

// layOut stages the plan's items into the instance's folder.
func (r stageRoom) layOut(ctx context.Context, p plan.Plan, in registry.Instance) error {
	return r.container.LayOut(ctx, p, in, func(work files.Folder) error {
		if err := r.stores.MakeDefault(p, work); err != nil {
			return err
		}
		if err := r.data.Bring(ctx, p, in); err != nil {
			return err
		}
		r.data.GiveTickets(p)
		return nil
	})
}

// planAgain plans for an instance that will not start.
func (r stageRoom) planAgain(ctx context.Context, in registry.Instance) (plan.Plan, error) {
	p, err := r.container.Plan(ctx, r.request(in))
	if err != nil {
		return p, err
	}
	return plan.Resolve(p, plan.Dirs{Work: r.workDir, Log: r.logDir}), nil
}

// containerConfig configures the preparation of this agent's container.
func (a *agent) containerConfig(requireLimits bool) prepare.Config {
	return prepare.Config{
		Log: a.log, App: a.app, AppID: a.id.appID, Run: a.id.run, Registry: a.registryAddr.String(),
		WorkDir: a.workDir, LogDir: a.logDir,
		Host:      a.alloc.Host,
		Socket:    func(in registry.Instance) string { return a.state.Socket(a.id.appID, in.String()) },
		Submitter: a.submitter(),
		Engine:    a.engine, Policy: a.policy, RequireLimits: requireLimits, ImageEnv: a.envImage,
		DefaultFS: a.filesystem, Ports: a.ports, GPUs: a.gpus, Stores: a.stores,
	}
}

// submitter is the user whom the launcher names as the job's; "": it names none. A launcher says so by a variable alone
// that no definition can set, as YARN's USER.
func (a *agent) submitter() string {
	if a.id.found.Origins["user"] == "" {
		return ""
	}
	return a.alloc.User
}

// storesOf opens the stores of this agent's data with the rights of its process.
func (a *agent) storesOf() *stores.Stores {
	return &stores.Stores{
		WorkDir: a.workDir, DefaultFS: a.filesystem, Login: a.hadoop, Account: a.alloc.User,
		CCache:    a.envGiven["KRB5CCNAME"],
		User:      func() *plan.UserFacts { return a.container.User() },
		Owner:     func() *plan.UserFacts { return a.container.Owner() },
		Admission: func(p plan.Plan) files.Admission { return a.container.Admission(p) },
		Notice: func(text string) {
			a.log.Warn("waiting for a store", "cause", text)
			a.logFile.say("muster: " + text) // the launcher's user sees nothing else meanwhile
		},
	}
}

// dataConfig configures this agent's data manager.
func (a *agent) dataConfig() manager.Config {
	return manager.Config{
		Log: a.log, App: a.app.App, WorkDir: a.workDir, Loop: a.loop, Stores: a.stores,
		Self:    manager.Self{AppID: a.id.appID, Run: a.id.run, Inc: a.inc, Instance: a.id.instance},
		Notices: manager.Notices{Warn: a.journal.Warn, Mended: a.journal.Mended, Event: a.journal.Event},
		Gang: manager.Gang{
			Live: a.client.Live, Status: a.client.Status, Counts: func() map[string]int { return a.member.Counts() },
			PlanAgain: stageRoom{a}.planAgain,
			Dead:      func(m registry.Member) bool { dead, _ := member.Dead(m); return dead },
		},
		Membership: func() manager.Membership {
			if membership := a.member.Membership(); membership != nil {
				return membership
			}
			return nil
		},
		Process: manager.Process{
			Plan: a.currentPlan, Over: func() <-chan struct{} { return a.runs().Over() }, Fail: a.failData,
			Beside: func(ctx context.Context, argv func(map[string]string) []string) (*sandbox.Session, error) {
				return a.runs().Beside(ctx, argv)
			},
		},
	}
}

// checkpointConfig configures this agent's checkpoints.
func (a *agent) checkpointConfig() checkpoint.Config {
	return checkpoint.Config{
		Log: a.log, AppID: a.id.appID, Run: a.id.run, Inc: a.inc, Loop: a.loop, State: a.state.App(a.id.appID),
		Notices:  checkpoint.Notices{Warn: a.journal.Warn, Mended: a.journal.Mended},
		Registry: func() checkpoint.Registry { return a.member.Membership() },
		Facts:    func() conductor.Facts { return plan.Gang(a.app.App, a.request(registry.Instance{})) },
		Open:     a.stores.Open, Folder: a.stores.Folder, Transfer: a.data.Transfer,
		Owner: func() *plan.UserFacts { return a.container.Owner() }, Overrides: a.container.Overrides,
		Signal: func(name string) error { return a.runs().SignalNamed(name) },
	}
}

// policy is the plan's rules for failures and stops in the machine's form.
func (r stageRoom) policy(p plan.Plan) *machine.Policy {
	barrier := plan.Seconds(p.Barrier.Timeout)
	if r.times.Barrier > 0 {
		barrier = r.times.Barrier
	}
	return &machine.Policy{
		Scope: p.Restart.Scope, Service: p.Who.Role == "service", Follows: len(p.Barrier.After) > 0,
		Ordered: plan.Gang(r.app.App, plan.Request{}).Awaited(p.Who.Component),
		Rule:    p.Restart.Rule(),
		Grace:   plan.Seconds(p.Stop.Grace), Timeout: plan.Seconds(p.Timeout), Duration: plan.Seconds(p.Duration),
		Barrier: barrier, Hold: plan.Seconds(p.Hold), HoldEnds: p.HoldEnds,
	}
}

// exitOf is what a failed staging knows beside its class: the end of a command, and whether an image may come another
// time; nil: nothing.
func exitOf(err error) *machine.Exit {
	failed, ok := errors.AsType[*fault.Error](err)
	if !ok || !failed.Command && !failed.Passing {
		return nil
	}
	return &machine.Exit{
		Code: failed.Code, Signal: failed.Signal, Passing: failed.Passing,
		OOM: failed.Class == registry.ClassOOM, Peak: failed.Peak, Limit: failed.Limit,
	}
}

// remember records what the next agent of this host needs if this one is killed.
func (a *agent) remember(in registry.Instance, g *sandbox.Guard) error {
	var known status.AppFile
	err := status.ReadJSON(filepath.Join(a.state.App(a.id.appID), "app.json"), &known)
	// otherwise `muster run`, or another agent of this run, has written it
	if err != nil || known.Run != a.id.run || !status.ProcessLives(known.Pid) {
		begun := a.started
		if err == nil && known.Run == a.id.run { // keep the beginning of the run
			begun = known.Started
		}
		if err := a.writeAppFile(begun); err != nil {
			return err
		}
	}
	place := status.PlaceFile{Version: 1, Run: a.id.run, LogDir: filepath.Join(a.logDir, in.String())}
	if err := status.WriteJSON(a.state.Place(a.id.appID, in.String()), place); err != nil {
		return err
	}
	left := g.Remains()
	return status.WriteOwnJSON(a.record(in), status.InstanceFile{
		Version: 1, Pid: a.facts.PID, StartTicks: a.facts.Start, BootID: a.facts.Boot, PidNS: a.facts.PidNS, Inc: a.inc,
		Cgroups: append([]string{}, left.Cgroups...), Inodes: left.Inodes, Mounts: []string{}, Dirs: left.Dirs,
		WorkDir: a.currentPlan().Process.Folder,
		Guard:   &registry.ProcessRef{Pid: g.PID(), Start: g.StartTicks()}, Seen: prepare.SeeGuard(g.PID()),
	})
}

// record is the path of that record.
func (a *agent) record(in registry.Instance) string {
	return filepath.Join(a.state.App(a.id.appID), in.String()+".json")
}

// forget removes the record once nothing is left to clear up.
func (a *agent) forget(in registry.Instance) {
	if a.mine(in) {
		_ = os.Remove(a.record(in)) // the next agent replaces it
	}
}

// mine tells that no other agent of this host has taken over the index.
func (a *agent) mine(in registry.Instance) bool {
	var f status.InstanceFile
	err := status.ReadJSON(a.record(in), &f)
	return err == nil && f.Inc == a.inc
}

// writeAppFile records the run for later commands on this host.
func (a *agent) writeAppFile(begun time.Time) error {
	file := status.AppFile{
		Version: 1, App: a.id.appID, Name: a.app.Name, Run: a.id.run, Registry: a.registryAddr,
		WorkDir: a.workDir, LogDir: a.logDir, Pid: os.Getpid(), Started: status.Stamp(begun),
	}
	for _, path := range []string{
		filepath.Join(a.state.App(a.id.appID), "app.json"),
		filepath.Join(a.workDir, "app.json"),
	} {
		if err := status.WriteJSON(path, file); err != nil {
			return err
		}
	}
	return nil
}

// open makes the agent's socket, which the container shows its process. Requests are answered once serve is called.
func (r stageRoom) open(ctx context.Context, in registry.Instance) (serve func(logDir string), err error) {
	l, err := r.listen(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := r.giveSocket(r.state.Socket(r.id.appID, in.String())); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	served := false
	r.atEnd(func() {
		if !served {
			_ = l.Close() // it served no request
		}
	})
	return func(logDir string) {
		served = true
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // served until the agent closes
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := status.Serve(ctx, l, status.Handler(r.source(logDir))); err != nil {
				r.log.Warn("local API failed", "err", err)
			}
		}()
		r.atEnd(func() {
			if u, ok := l.(*net.UnixListener); ok {
				u.SetUnlinkOnClose(r.mine(in))
			}
			cancel()
			<-done
		})
	}, nil
}

// giveSocket lets the process reach its agent: by the socket that its container shows, or by a path that its user may
// pass.
func (r stageRoom) giveSocket(path string) error {
	u := r.container.Owner()
	switch {
	case u == nil || u.UID == 0 || os.Geteuid() != 0:
		return nil
	case r.currentPlan().Root.Kind == plan.RootHost:
		return r.state.Admit(path, u.UID, u.GID)
	}
	return os.Lchown(path, u.UID, u.GID)
}

// atEnd registers undo for the end of the agent. The last one registered runs first.
func (a *agent) atEnd(undo func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closers = append(a.closers, undo)
}

func (r stageRoom) listen(ctx context.Context, in registry.Instance) (net.Listener, error) {
	path := r.state.Socket(r.id.appID, in.String())
	for end := time.Now().Add(workdir.TakeoverPatience); ; {
		l, err := status.Listen(path)
		if err == nil || !errors.Is(err, status.ErrAnswered) || time.Now().After(end) {
			return l, err
		}
		if err := wait.For(ctx, workdir.TakeoverPoll); err != nil {
			return nil, err
		}
	}
}
