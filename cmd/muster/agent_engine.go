package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
)

// engineRoom does the machine's effects on the process.
type engineRoom struct{ *agent }

// Do acts; that the process is gone comes from the guard.
func (r engineRoom) Do(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	switch e.Kind {
	case machine.DoStart:
		pid, err := r.start(ctx, e, s)
		if err != nil {
			return machine.Event{Kind: machine.Gone, Attempt: e.Attempt, Exit: r.keepEnd(notStarted(err))}, true
		}
		r.log.Info("process started", "pid", pid, "attempt", e.Attempt)
		r.notify.started()
		r.loop.Tell(machine.Event{Kind: machine.Started, Attempt: e.Attempt})
		r.attend(e.Attempt, pid)
		return machine.Event{}, false
	case machine.DoTerminate:
		r.stop(s)
	case machine.DoKill:
		r.data.callOffOutputs(s)
		if err := r.currentGuard().Kill(); err != nil && !errors.Is(err, sandbox.ErrGone) {
			r.log.Warn("kill", "err", err)
		}
	case machine.DoRebind:
		return r.rebind(ctx, e)
	case machine.DoJoin, machine.DoAcknowledge, machine.DoPublish, machine.DoReadRoster, machine.DoReport, machine.DoRestarted, machine.DoReportUp, machine.DoCommit,
		machine.DoLeave, machine.DoStage, machine.DoArm:
	}
	return machine.Event{}, false
}

// notStarted is the exit of a process that never ran: a missing program or folder stays missing.
func notStarted(err error) *machine.Exit {
	x := &machine.Exit{At: time.Now(), Message: err.Error(), Class: registry.ClassMuster}
	if _, ok := errors.AsType[*sandbox.StartError](err); ok {
		x.Class = registry.ClassDefinition
		x.Final = errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.E2BIG)
	}
	switch class := fault.ClassOf(err); class {
	case registry.ClassDefinition, registry.ClassGPU:
		x.Class, x.Final = class, true
	case registry.ClassData:
		x.Class = class
	}
	if errors.Is(err, member.ErrCutOff) {
		x.Class, x.CutOff = registry.ClassRegistry, true
	}
	return x
}

func (r engineRoom) start(ctx context.Context, e machine.Effect, s machine.State) (pid int, err error) {
	r.mu.Lock()
	p, held, guard, numbers := r.plan, r.held, r.guard, maps.Clone(r.portOf)
	over := make(chan struct{})
	r.marks, r.blamed, r.over, r.watch = r.logSizes(s.Instance), blame{}, over, nil
	if p.Script != nil {
		r.watch = &watch{agent: r.agent, attempt: e.Attempt, script: p.Script, over: r.over, begun: make(chan struct{}), told: make(chan struct{})}
	}
	r.mu.Unlock()
	roster, raw := r.member.Roster()
	facts := r.startFacts(plan.StartFacts{Generation: s.Gen, Attempt: e.Attempt, Ports: numbers, RosterText: raw})
	if p.Script != nil {
		order := r.nextOrder(plan.CommandStart)
		facts.Task = order.Task
		r.forgetPIDs(r.filledScript())
		if _, err := r.tell(order, r.filledScript()); err != nil {
			return 0, err
		}
	}
	if err := r.checkpoints.notReady(); err != nil {
		return 0, err
	}
	if p.Checkpoint.Ranks == conductor.RanksEach {
		e.Resume = nil
	}
	if newest, at, ok := r.checkpoints.newest(ctx, e.Resume, true); ok {
		facts.Checkpoint, facts.CheckpointStep = at, newest.Step
	}
	if facts.Secrets, err = secrets(p.Process.SecretRefs); err != nil {
		return 0, fault.Definition(err)
	}
	start, problems := plan.Finish(p, roster, facts, frameworks.Env)
	if bad := problems.Errors(); len(bad) > 0 {
		return 0, fault.Definition(bad)
	}
	r.data.tellInputs(&start)
	if err := r.writeFiles(p, start.Files); err != nil {
		return 0, err
	}
	limits, err := rlimits(p.Limits)
	if err != nil {
		return 0, fault.Definition(err)
	}
	if err := r.gateAgain(); err != nil {
		return 0, err
	}
	r.grow(p, guard)
	if err := held.ReleaseOnly(ofProcess(p)); err != nil {
		return 0, fmt.Errorf("hand the ports over: %w", err)
	}
	r.setStartEnv(start.Env)
	pipes, err := r.data.pipes(p)
	if err != nil {
		return 0, err
	}
	fence := r.member.Fence()
	if err := fence.Arm(guard); err != nil {
		pipes.abandon()
		return 0, err
	}
	pid, err = guard.Start(sandbox.Spec{
		Attempt: e.Attempt, Argv: start.Argv, Env: environ(start.Env), Dir: p.Process.Cwd, Rlimits: limits, Linger: p.Script != nil,
		Stdin: pipes.stdin, Stdout: pipes.stdout,
	})
	if err != nil {
		pipes.abandon()
		fence.Disarm()
	} else {
		pipes.begin(p, over)
		r.beginSides(p, roster, facts, start, limits)
		r.endOnFaulty(guard)
	}
	return pid, err
}

// startFacts adds what every start and every command of this agent is told.
func (a *agent) startFacts(f plan.StartFacts) plan.StartFacts {
	f.Host, f.StatusSocket, f.Publisher = a.alloc.Host, a.state.Socket(a.id.appID, a.loop.State().Instance.String()), a.publisher
	return f
}

// writeFiles lays out what a start reads: the roster, and values that are too long for a variable. A secret among them
// is its process's alone.
func (r engineRoom) writeFiles(p plan.Plan, texts map[string]string) (err error) {
	work, err := files.As(r.user).Below(r.workDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for name, text := range texts {
		secret := slices.Contains(p.Process.Secrets, filepath.Base(name))
		if err := work.Write(filepath.Join(p.Process.Folder, name), text, secret); err != nil {
			return err
		}
	}
	return nil
}

// rlimits are the definition's; what is registered for RDMA stays locked in memory.
func rlimits(l plan.Limits) (map[string]sandbox.Rlimit, error) {
	limits, err := sandbox.ParseRlimits(l.Ulimits)
	if _, own := limits["memlock"]; err == nil && l.RDMA && !own {
		limits["memlock"] = sandbox.Rlimit{Soft: sandbox.Unlimited, Hard: sandbox.Unlimited}
	}
	return limits, err
}

// grow raises the limit of memory after each end for want of it, as muster.memory.autoscale says.
func (a *agent) grow(p plan.Plan, guard *sandbox.Guard) {
	a.mu.Lock()
	was, now := a.memory, plan.Grown(p.Limits, a.alloc.Envelope, a.starved)
	a.mu.Unlock()
	if now == was {
		return
	}
	if err := guard.Grow(int64(now) * megabyte); err != nil {
		a.log.Warn("raise the limit of memory", "mb", now, "err", err)
		return
	}
	a.log.Info("limit of memory raised", "from_mb", was, "to_mb", now)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory = now
}

// stop asks the process to end; to save itself first, where the definition says how to ask for that.
func (r engineRoom) stop(s machine.State) {
	over := r.currentOver()
	if !r.checkpoints.asksToSave() || over == nil {
		r.signalStop()
		return
	}
	go func() {
		if r.checkpoints.askToSave(s.StopGrace(), over) {
			r.signalStop()
		}
	}()
}

// signalNamed signals the process; os.ErrProcessDone: there is none.
func (a *agent) signalNamed(name string) error {
	number, err := status.ParseSignal(name)
	if err != nil {
		return err
	}
	err = a.currentGuard().Signal(syscall.Signal(number))
	if errors.Is(err, sandbox.ErrGone) || errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// signalStop asks the process to end: by the package's STOP where it has one.
func (r engineRoom) signalStop() {
	r.mu.Lock()
	p, over, w := r.plan, r.over, r.watch
	r.mu.Unlock()
	if w != nil {
		w.stop()
	}
	r.currentSides().stop()
	if p.Script != nil && p.Script.Has(plan.CommandStop) && over != nil {
		go r.stopScript(over, seconds(p.Stop.Grace))
		return
	}
	r.signalProcess()
}

func (a *agent) signalProcess() {
	n, err := status.ParseSignal(a.currentPlan().Stop.Signal)
	if err != nil {
		n = int(syscall.SIGTERM)
	}
	if err := a.currentGuard().Signal(syscall.Signal(n)); err != nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		a.log.Warn("signal", "signal", n, "err", err)
	}
}

// rebindPause is how long to wait before ports that could not be had are asked for again.
const rebindPause = time.Second

// rebind holds the ports again; where a stranger took one meanwhile, others are taken. It goes on until
// there are some: nothing may be acknowledged without them.
func (r engineRoom) rebind(ctx context.Context, e machine.Effect) (machine.Event, bool) {
	r.endSides()
	r.replaceGuard()
	for {
		same, err := r.holdAgain()
		if err == nil {
			return machine.Event{Kind: machine.Rebound, Attempt: e.Attempt, On: same}, true
		}
		r.log.Error("take other ports", "err", err)
		select {
		case <-ctx.Done():
			return machine.Event{}, false
		case <-time.After(rebindPause):
		}
	}
}

func (r engineRoom) holdAgain() (same bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = r.held.Rebind(); err == nil {
		return true, nil
	}
	r.log.Warn("hold the ports again", "err", err)
	if err := r.held.Close(); err != nil {
		r.log.Warn("give the ports away", "err", err)
	}
	held, err := r.claimPorts(r.plan, nil)
	if err != nil {
		return false, err
	}
	before := r.portOf
	r.held, r.portOf = held, held.Ports()
	return maps.Equal(before, r.portOf), nil
}

// parkPatience bounds the start of a guard.
const parkPatience = 30 * time.Second

// replaceGuard parks another guard when somebody has killed the one that was there, or its timer has.
func (a *agent) replaceGuard() {
	a.mu.Lock()
	ends := a.guardEnds
	a.mu.Unlock()
	if ends != nil { // its process went before it
		select {
		case <-ends:
		case <-time.After(parkPatience):
			a.log.Error("the guard does not end")
		}
	}
	a.mu.Lock()
	gone := a.guardGone
	a.mu.Unlock()
	if !gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), parkPatience)
	defer cancel()
	if err := a.park(ctx, a.loop.State().Instance); err != nil {
		a.log.Error("park another guard", "err", err)
	}
}

// park starts the guard of this instance and remembers it where the next agent here would look.
func (a *agent) park(ctx context.Context, in registry.Instance) error {
	p := a.currentPlan()
	confine, err := a.confinement(p, in)
	if err != nil {
		return err
	}
	outlast()
	guard, err := a.engine.Engine.Park(ctx, sandbox.Options{
		LogDir: filepath.Join(a.logDir, in.String()), Logger: a.log, Confine: confine,
		OOMScoreAdj: a.standing.oomScore, Nice: a.standing.nice,
	})
	if err != nil {
		return fault.NotPermitted(fmt.Errorf("engine %s: %w", a.engine.Engine.Name(), err))
	}
	a.mu.Lock()
	a.guard, a.guardGone, a.memory = guard, false, p.Limits.MemoryMB
	a.closers = append(a.closers, func() { a.endGuard(in, guard) })
	a.mu.Unlock()
	go a.watchGuard(guard)
	return a.remember(in, guard)
}

// endGuard ends the guard and all it holds. What does not go is named, and stays on record for the next agent here.
func (a *agent) endGuard(in registry.Instance, guard *sandbox.Guard) {
	if err := guard.Close(); err != nil && !errors.Is(err, sandbox.ErrGone) {
		a.log.Error("end the guard", "err", err)
		return
	}
	if guard == a.currentGuard() { // the record is of that one
		a.forget(in)
	}
}

func (a *agent) currentPlan() plan.Plan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan
}

func (a *agent) currentGuard() *sandbox.Guard {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.guard
}

// claimPorts takes the plan's ports, those of prefer first if they can be had.
func (a *agent) claimPorts(p plan.Plan, prefer map[string]int) (*ports.Held, error) {
	asked, err := ports.ParseRanges(a.ports)
	if err != nil {
		return nil, fault.Definition(fmt.Errorf("--ports: %w", err))
	}
	usable, warning, err := ports.Usable(asked, "")
	if err != nil {
		return nil, err
	}
	if prefer = maps.Clone(prefer); prefer == nil {
		prefer = map[string]int{}
	}
	if warning != "" {
		a.log.Warn("ports", "cause", warning)
	}
	var want []ports.Want
	for _, port := range p.Ports {
		w := ports.Want{Name: port.Name, Number: port.Want}
		if port.Allowed != "" {
			allowed, err := appdef.ParsePortRanges(port.Allowed)
			if err != nil {
				return nil, fault.Definition(fmt.Errorf("slider.allowed.ports: %w", err))
			}
			for _, r := range allowed {
				w.Allowed = append(w.Allowed, ports.Range(r))
			}
		}
		if port.Exact {
			w.Allowed = ports.Ranges{{From: port.Want, To: port.Want}}
		}
		if _, had := prefer[port.Name]; port.Shared && !had && w.Number == 0 {
			from := usable
			if len(w.Allowed) > 0 {
				from = w.Allowed
			}
			prefer[port.Name] = from.Agreed(a.id.appID, p.Who.Component, port.Name)
		}
		want = append(want, w)
	}
	return ports.Claim(usable, want, prefer)
}

// watchGuard turns the guard's word into events: an attempt is over when its process has exited
// and nothing of it is left.
func (a *agent) watchGuard(g *sandbox.Guard) {
	exits := map[int]sandbox.Exit{}
	started := map[int]time.Time{}
	for event := range g.Events() {
		switch e := event.(type) {
		case sandbox.Started:
			started[e.Attempt] = time.Now()
		case sandbox.Lingers:
			go a.startEnded(e.Attempt, e.Left)
		case sandbox.Adopted: // Adopt has said so
		case sandbox.Exited:
			exits[e.Attempt] = e.Exit
			a.currentSides().processOver(e.Exit.Code != nil && *e.Exit.Code == 0)
		case sandbox.Empty:
			x, ok := exits[e.Attempt]
			if !ok {
				continue
			}
			delete(exits, e.Attempt)
			a.member.Fence().Disarm()
			a.attemptOver()
			if !e.LogsComplete {
				a.log.Warn("the last lines of the log may be missing: its disk does not answer")
			}
			a.checkpoints.seeLast() // what it saved last counts for its budget and in the result
			end := a.keepEnd(a.judge(x, x.At.Sub(started[e.Attempt])))
			a.data.ended(machine.Event{Kind: machine.Gone, Attempt: e.Attempt, Exit: end}, a.checkpoints.lastUpload(end))
		case sandbox.Stuck:
			a.log.Error("a process does not die", "process", e.StuckProcess.String())
		case sandbox.LogLost:
			a.log.Warn("log bytes lost", "stream", e.Stream, "bytes", e.Bytes, "err", e.Err)
		case sandbox.DeadMan:
			a.log.Error("this agent could not say in time that it is in touch with the registry: its guard has ended the process")
			a.member.Fence().TimerFired()
			a.mu.Lock()
			a.guardEnds = make(chan struct{})
			a.mu.Unlock()
		case sandbox.Gone:
			a.log.Error("the guard is gone", "err", e.Err, "left", e.Left)
			a.mu.Lock()
			a.guardGone = true
			if a.guardEnds != nil {
				close(a.guardEnds)
				a.guardEnds = nil
			}
			a.mu.Unlock()
		}
	}
}

// currentOver is closed when the attempt under way is over; nil: there is none.
func (a *agent) currentOver() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// attemptOver tells who waits for the end of the process that it has come.
func (a *agent) attemptOver() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		close(a.over)
		a.over = nil
	}
}

func environ(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
