package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wait"
)

// Process is the process of one instance through all of its attempts.
type Process struct {
	Config
	life   context.Context //nolint:containedctx // of work that ends with an attempt or a guard
	logs   Logs
	guards *guards
	blamed *blames
	work   sync.WaitGroup // goroutines that end with their attempt or their guard

	mu       sync.Mutex
	current  attempt
	memory   int // MB, the limit in force
	starved  int // ends out of memory
	failures int
	lastEnd  string            // how the last attempt ended; "": none has
	sides    *sideGroup        // of the last start; nil: none
	startEnv map[string]string // of the last start; nil: none yet
	task     int               // commands given so far

	statusTurn sync.Mutex // one STATUS at a time
}

// attempt is one start of the process. The zero value is none.
type attempt struct {
	over  chan struct{}    // closed at its end, and nil from then on
	watch *watch           // nil: no script runs it
	marks map[string]int64 // sizes of the logs when it began
}

// New makes the process of an instance that has been prepared. Park starts its guard. The process outlives the
// cancellation of ctx: Close ends it.
func New(ctx context.Context, c Config) *Process {
	p := &Process{
		Config: c, life: context.WithoutCancel(ctx), logs: Logs{Dir: c.LogDir, Log: c.Log, User: c.User},
		blamed: &blames{}, memory: c.Plan.Limits.MemoryMB,
	}
	p.guards = &guards{log: c.Log, park: p.park, heard: p.hear}
	return p
}

// park starts a guard. Each has the plan's limit of memory, however far the one before it had grown.
func (p *Process) park(ctx context.Context) (*sandbox.Guard, error) {
	guard, err := p.Park(ctx)
	if err == nil {
		p.mu.Lock()
		p.memory = p.Plan.Limits.MemoryMB
		p.mu.Unlock()
	}
	return guard, err
}

// StartGuard starts the guard that will hold the process.
func (p *Process) StartGuard(ctx context.Context) error { return p.guards.start(ctx) }

// Close ends the guard and all it holds, and waits for the goroutines of this room. False: a process does not end; the
// log names it.
func (p *Process) Close() bool {
	if !p.guards.close() {
		return false
	}
	p.endSides()
	p.work.Wait()
	return true
}

// Do does an effect on the process. The end of the process is reported by the guard.
func (p *Process) Do(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	switch e.Kind {
	case machine.DoStart:
		pid, err := p.start(ctx, e, s)
		if errors.Is(err, sandbox.ErrLeft) { // no proof of its end: as for a process that does not die
			p.Log.Error("guard ended during a start, and processes of it are left", "attempt", e.Attempt, "err", err)
			return machine.Event{}, false
		}
		if err != nil {
			return machine.Event{Kind: machine.Gone, Attempt: e.Attempt, Exit: p.keepEnd(notStarted(err))}, true
		}
		p.Log.Info("process started", "pid", pid, "attempt", e.Attempt)
		p.Started()
		p.Loop.Tell(machine.Event{Kind: machine.Started, Attempt: e.Attempt})
		p.attend(e.Attempt)
		return machine.Event{}, false
	case machine.DoTerminate:
		p.terminate(s)
	case machine.DoKill:
		p.Data.CallOff(s)
		p.Kill()
	case machine.DoRebind:
		return p.rebind(ctx, e)
	case machine.DoJoin, machine.DoAcknowledge, machine.DoPublish, machine.DoReadRoster, machine.DoReport,
		machine.DoRestarted, machine.DoReportUp, machine.DoCommit, machine.DoLeave, machine.DoStage, machine.DoArm:
	}
	return machine.Event{}, false
}

// notStarted is the exit of a process that never ran. A missing program or folder stays missing.
func notStarted(err error) *machine.Exit {
	x := &machine.Exit{At: time.Now(), Message: err.Error(), Class: registry.ClassMuster}
	if e, ok := errors.AsType[*sandbox.StartError](err); ok {
		x.Message += remedy(e)
		x.Class = registry.ClassDefinition
		x.Final = slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC, syscall.E2BIG},
			func(lasting error) bool {
				return errors.Is(err, lasting)
			})
	}
	class := fault.ClassOf(err)
	lasting := class == registry.ClassDefinition || class == registry.ClassGPU
	if lasting || class == registry.ClassData {
		x.Class, x.Final = class, x.Final || lasting
	}
	if _, ok := errors.AsType[cutOff](err); ok {
		x.Class, x.CutOff = registry.ClassRegistry, true
	}
	return x
}

// remedy is what to do about a program that is not there, where the hint does not say so: a path is at fault.
func remedy(e *sandbox.StartError) string {
	if e.Act != "exec" || e.Hint != "" || !errors.Is(e, fs.ErrNotExist) {
		return ""
	}
	return "; the path is looked up where the process runs: on this host, or in the image of muster.image"
}

// cutOff is a start that the partition guard has refused.
type cutOff struct{ error }

// start begins an attempt.
func (p *Process) start(ctx context.Context, e machine.Effect, s machine.State) (pid int, err error) {
	guard := p.guards.now()
	over := p.begin(e.Attempt)
	roster, raw := p.Roster()
	facts := p.startFacts(plan.StartFacts{
		Generation: s.Gen, Attempt: e.Attempt, Ports: p.Ports.Numbers(),
		RosterText: raw,
	})
	if p.Plan.Script != nil {
		if facts.Task, err = p.orderStart(); err != nil {
			return 0, err
		}
	}
	if err := p.Checkpoints.NotReady(); err != nil {
		return 0, err
	}
	if p.Plan.Checkpoint.Ranks == conductor.RanksEach {
		e.Resume = nil
	}
	if path, step, ok := p.Checkpoints.Resume(ctx, e.Resume); ok {
		facts.Checkpoint, facts.CheckpointStep = path, step
	}
	if err := p.secrets(&facts); err != nil {
		return 0, err
	}
	start, problems := plan.Finish(p.Plan, roster, facts, frameworks.Env)
	if bad := problems.Errors(); len(bad) > 0 {
		return 0, fault.Definition(bad)
	}
	p.Data.Inputs(&start)
	if p.Plan.Login != nil {
		p.Login.Hosts(&start, roster)
	}
	if err := p.writeFiles(start.Files); err != nil {
		return 0, err
	}
	limits, err := rlimits(p.Plan.Limits)
	if err != nil {
		return 0, fault.Definition(err)
	}
	if err := p.GPUs.Fit(ctx, guard.Holds); err != nil {
		return 0, err
	}
	if ctx.Err() != nil { // what is to end must not begin
		return 0, fmt.Errorf("start was called off: %w", context.Cause(ctx))
	}
	p.grow(guard, facts)
	if err := p.Ports.Release(ofProcess(p.Plan)); err != nil {
		return 0, fmt.Errorf("release ports to the process: %w", err)
	}
	p.setStartEnv(start.Env)
	spec := sandbox.Spec{
		Attempt: e.Attempt, Argv: start.Argv, Env: environ(start.Env), Dir: p.Plan.Process.Cwd, Rlimits: limits,
		Linger: p.Plan.Script != nil,
	}
	if pid, err = p.launch(guard, spec, over); err != nil {
		return 0, err
	}
	p.beginSides(guard, roster, facts, start, limits)
	if p.GPUs.Suspect() { // a fault since Fit: it found no process to end
		p.endForGPU(guard)
	}
	return pid, nil
}

// begin notes that an attempt begins: what its logs get from here on is its own.
func (p *Process) begin(number int) (over chan struct{}) {
	over = make(chan struct{})
	now := attempt{over: over, marks: p.logs.sizes()}
	if p.Plan.Script != nil {
		now.watch = newWatch(p, number, over)
	}
	p.blamed.forget()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = now
	return over
}

// launch has the guard start the process, with its pipes and the dead-man timer armed.
func (p *Process) launch(guard *sandbox.Guard, spec sandbox.Spec, over <-chan struct{}) (pid int, err error) {
	pipes, err := p.Data.Pipes()
	if err != nil {
		return 0, err
	}
	if err := p.Fence.Arm(guard); err != nil {
		pipes.Abandon()
		return 0, cutOff{err}
	}
	spec.Stdin, spec.Stdout = pipes.Stdin(), pipes.Stdout()
	if pid, err = guard.Start(spec); err != nil {
		pipes.Abandon()
		p.Fence.Disarm()
		return 0, err
	}
	pipes.Begin(over)
	return pid, nil
}

// writeFiles writes the files of a start: the roster, values that are too long for a variable, what ssh needs. Only the
// process may read a secret among them.
func (p *Process) writeFiles(texts map[string]string) (err error) {
	work, err := files.Below(p.WorkDir)
	if err != nil {
		return err
	}
	root, err := work.Make(p.Plan.Process.Folder)
	if err = errors.Join(err, work.Close()); err != nil {
		return err
	}
	folder := p.User.In(root)
	defer func() { err = errors.Join(err, folder.Close()) }()
	for name, text := range texts {
		if err := folder.Write(name, text, p.modeOf(name)); err != nil {
			return err
		}
	}
	return nil
}

// modeOf is the mode of a file of a start.
func (p *Process) modeOf(name string) fs.FileMode {
	switch {
	case slices.Contains(p.Plan.Process.Secrets, filepath.Base(name)), name == plan.LoginKey:
		return 0o600
	case filepath.Dir(name) == plan.LoginPrograms:
		return 0o755
	}
	return 0o644
}

// startFacts adds the facts that every start and every command of this instance gets.
func (p *Process) startFacts(f plan.StartFacts) plan.StartFacts {
	f.Host, f.StatusSocket, f.Publisher = p.Reach.Host, p.Reach.Socket, p.Reach.Publisher
	return f
}

// secrets adds the values of the definition's secrets to the facts of one start, and writes them as files.
func (p *Process) secrets(facts *plan.StartFacts) error {
	values, err := p.Secrets(p.Plan.Process.SecretRefs)
	if fault.Is(err, registry.ClassNotPermitted) {
		return err
	}
	if err != nil {
		return fault.Definition(err)
	}
	facts.Secrets = values
	if p.Secret != nil {
		p.Secret(values)
	}
	if p.SecretFiles != nil {
		facts.SecretDir, err = p.SecretFiles(values)
	}
	return err
}

// rlimits are the definition's. Memory for RDMA may be locked without a limit.
func rlimits(l plan.Limits) (map[string]sandbox.Rlimit, error) {
	limits, err := sandbox.ParseRlimits(l.Ulimits)
	if _, own := limits["memlock"]; err == nil && l.RDMA && !own {
		limits["memlock"] = sandbox.Rlimit{Soft: sandbox.Unlimited, Hard: sandbox.Unlimited}
	}
	return limits, err
}

// megabyte is MiB, as in YARN.
const megabyte = 1 << 20

// grow raises the memory limit after each end that muster.memory.autoscale grows it by.
func (p *Process) grow(guard *sandbox.Guard, start plan.StartFacts) {
	p.mu.Lock()
	was, now := p.memory, plan.Grown(p.Plan.Limits, p.Plan.Allocation.Envelope, p.starved, start)
	p.mu.Unlock()
	if now == was {
		return
	}
	if err := guard.Grow(int64(now) * megabyte); err != nil {
		p.Log.Warn("memory limit not raised", "mb", now, "err", err)
		return
	}
	p.Log.Info("memory limit raised", "from_mb", was, "to_mb", now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory = now
}

// terminate asks the process to end, and before that to save a checkpoint if the definition says how.
func (p *Process) terminate(s machine.State) {
	over := p.Over()
	w := p.watching()
	if !p.Checkpoints.AsksToSave() || over == nil || w != nil && w.isEmpty() {
		p.stop()
		return
	}
	p.work.Go(func() {
		if p.Checkpoints.AskToSave(s.StopGrace(), over) {
			p.stop()
		}
	})
}

// stop asks the process to end: by the package's STOP, if it has one.
func (p *Process) stop() {
	p.mu.Lock()
	now, sides := p.current, p.sides
	p.mu.Unlock()
	if now.watch != nil {
		now.watch.stop()
	}
	sides.stop()
	if now.watch != nil && now.over != nil {
		p.work.Go(func() { now.watch.runStop(plan.Seconds(p.Plan.Stop.Grace)) })
		return
	}
	p.signalStop()
}

// signalStop sends the process the definition's stop signal.
func (p *Process) signalStop() {
	n, err := status.ParseSignal(p.Plan.Stop.Signal)
	if err != nil {
		n = int(syscall.SIGTERM)
	}
	if err := p.Signal(n); err != nil && !hasEnded(err) {
		p.Log.Warn("process not signalled", "signal", n, "err", err)
	}
}

// Signal sends the process a signal; see hasEnded for its errors.
func (p *Process) Signal(n int) error { return p.guards.now().Signal(syscall.Signal(n)) }

// SignalNamed sends the process a signal by its name or number; os.ErrProcessDone: there is no process.
func (p *Process) SignalNamed(name string) error {
	number, err := status.ParseSignal(name)
	if err != nil {
		return err
	}
	err = p.Signal(number)
	if errors.Is(err, sandbox.ErrGone) || errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// hasEnded tells that an error of Signal means only that there is no process.
func hasEnded(err error) bool {
	return errors.Is(err, sandbox.ErrGone) || errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH)
}

// Kill ends the process and all its children.
func (p *Process) Kill() {
	if err := p.guards.now().Kill(); err != nil && !errors.Is(err, sandbox.ErrGone) {
		p.Log.Warn("process not killed", "err", err)
	}
}

// Over is closed when the current attempt is over; nil: there is none.
func (p *Process) Over() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.over
}

// rebindPause is the pause before ports are asked for again.
const rebindPause = time.Second

// rebind holds the ports again, or takes others if a stranger has taken one meanwhile. It retries until it has ports:
// without them nothing may be acknowledged.
func (p *Process) rebind(ctx context.Context, e machine.Effect) (machine.Event, bool) {
	p.endSides()
	p.guards.replace(ctx)
	for {
		same, err := p.Ports.TakeAgain(p.Plan)
		if err == nil && !same && p.Plan.Login != nil {
			p.Login.Moved(ctx)
		}
		if err == nil {
			return machine.Event{Kind: machine.Rebound, Attempt: e.Attempt, On: same}, true
		}
		p.Log.Error("no free ports found yet", "err", err)
		if wait.For(ctx, rebindPause) != nil {
			return machine.Event{}, false
		}
	}
}

// attemptOver closes the current attempt.
func (p *Process) attemptOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current.over != nil {
		close(p.current.over)
		p.current.over = nil
	}
}

func environ(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
