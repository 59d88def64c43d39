package process

import (
	"context"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
)

// attend watches one start until its process is over: the answers of STATUS, and the time limit of START.
func (p *Process) attend(attempt int) {
	w := p.watching()
	if w == nil {
		p.up(attempt)
		return
	}
	w.run()
}

// watching is the watch of the current start; nil: no script runs it.
func (p *Process) watching() *watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.watch
}

// watchOf is the watch of an attempt; nil: it has none, or is not the current one.
func (p *Process) watchOf(attempt int) *watch {
	if w := p.watching(); w != nil && w.attempt == attempt {
		return w
	}
	return nil
}

// up reports that the instance serves.
func (p *Process) up(attempt int) {
	p.Loop.Tell(machine.Event{Kind: machine.Up, Attempt: attempt})
}

// watch is one start of an instance that scripts run.
type watch struct {
	process *Process
	attempt int
	script  *plan.Script
	over    <-chan struct{}      // closed when the process is proved to be over
	told    chan struct{}        // closed when it is asked to stop: from then on a missing service is no failure
	lingers chan sandbox.Lingers // what the guard says of a START that has ended with 0: twice at most for each owner

	mu   sync.Mutex
	pid  int                // START's own number for itself; 0: it has not begun
	mute bool               // the failure to run STATUS was logged
	call context.CancelFunc // of the STATUS under way; nil: none is
	// owner is what the instance is; "": START, or nobody has decided yet.
	owner   script.Owner
	outcome script.Outcome // of owner Over
	empty   bool           // START has ended with 0, and nothing of it is left
	// stopping: somebody runs STOP. asked: the process itself was asked to end, after STOP where there is one.
	stopping, asked bool
}

func newWatch(p *Process, attempt int, over <-chan struct{}) *watch {
	return &watch{
		process: p, attempt: attempt, script: p.Plan.Script, over: over,
		told: make(chan struct{}), lingers: make(chan sandbox.Lingers, mostLingers),
	}
}

// mostLingers is how many reports of a guard wait for the watch. A supervisor that goes on causes one for each process
// that it replaces.
const mostLingers = 64

// eager is how often STATUS is asked until the instance serves.
const eager = time.Second

// run asks STATUS until the process is over, at first often.
func (w *watch) run() {
	w.process.work.Go(func() {
		ctx, cancel := context.WithCancel(w.process.life) // it ends with the process
		defer cancel()
		w.process.work.Go(func() {
			defer cancel()
			select {
			case <-w.over:
			case <-ctx.Done():
			}
		})
		(&following{watch: w}).follow(ctx)
	})
}

// born notes START's number for itself, which it may write to a pid file.
func (w *watch) born(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pid = pid
}

// left takes what the guard says of a START that has ended. What STATUS says meanwhile was about START.
func (w *watch) left(l sandbox.Lingers) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.lingers <- l:
	default:
		w.process.Log.Error("report of the guard lost", "left", l.Left)
	}
	if w.call != nil {
		w.call()
	}
}

// decided is what the instance is, and the outcome of one that is over.
func (w *watch) decided() (script.Owner, script.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owner, w.outcome
}

// isEmpty tells that START has ended with 0 and nothing of it is left on this host.
func (w *watch) isEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.empty
}

// own notes what the instance is from now on. What was asked to end is asked again: it may not have been there.
func (w *watch) own(owner script.Owner, outcome script.Outcome) {
	w.mu.Lock()
	w.owner, w.outcome = owner, outcome
	again := w.asked && !w.empty && owner != script.Over
	w.mu.Unlock()
	if again {
		w.process.signalStop()
	}
}

// mostStatus is the limit of one STATUS: one that hangs is a failure.
const mostStatus = time.Minute

// stop ends the judgement of an instance that is to end.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isTold() {
		return
	}
	close(w.told)
	if w.call != nil {
		w.call()
	}
}

// isTold tells that the instance is to end.
func (w *watch) isTold() bool {
	select {
	case <-w.told:
		return true
	default:
		return false
	}
}

// ask runs STATUS once, until ctx ends or its answer does not count any more (ok is false). A STATUS that cannot be run
// (the disk is full, too many processes) is not the instance's fault.
func (w *watch) ask(ctx context.Context) (answer script.Result, ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.call = cancel
	ok = !w.isTold() && len(w.lingers) == 0
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.call = nil
	}()
	if !ok {
		return answer, false
	}
	end, err := w.process.order(ctx, plan.CommandStatus, plan.Seconds(w.script.Timeout))
	if err != nil {
		w.unheard(ctx, err)
		return script.Result{NotRun: true, Why: err.Error()}, ctx.Err() == nil
	}
	w.unheard(ctx, nil)
	return end.Result, ctx.Err() == nil
}

// unheard logs once that STATUS cannot be run, until it can be run again.
func (w *watch) unheard(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !w.mute && ctx.Err() == nil {
		w.process.Log.Warn("STATUS cannot be run", "err", err)
	}
	w.mute = err != nil
}

// end ends a start that does not serve. The exit says why. Where STATUS alone has the word the instance may still be at
// work elsewhere: only STOP reaches it there. False: it is to end anyway, and has its grace.
func (w *watch) end(class registry.Class, why string) bool {
	select {
	case <-w.over: // it has ended by itself
		return true
	default:
	}
	if w.isTold() {
		return false
	}
	w.process.Log.Warn("instance ended", "cause", why)
	w.process.Condemn(class, why, false)
	if owner, _ := w.decided(); owner == script.Status {
		switch first, over := w.stopOnce(plan.Seconds(w.process.Plan.Stop.Grace)); {
		case over, !first && w.isEmpty():
			return true // another may run already
		case w.isEmpty():
			w.process.finish()
			return true
		}
	}
	w.process.Kill()
	return true
}

// runStop runs STOP during the grace, once in a start, and then asks the process itself to end. The machine ends both
// when the grace is over.
func (w *watch) runStop(grace time.Duration) {
	if first, over := w.stopOnce(grace); !first || over {
		return
	}
	w.mu.Lock()
	w.asked = true
	empty := w.empty
	w.mu.Unlock()
	if empty {
		w.process.finish()
		return
	}
	w.process.signalStop()
}

// stopOnce runs STOP, if the package has one, for the first who asks; over: the process has ended meanwhile.
func (w *watch) stopOnce(grace time.Duration) (first, over bool) {
	w.mu.Lock()
	first = !w.stopping
	w.stopping = true
	w.mu.Unlock()
	if first && w.script.Has(plan.CommandStop) {
		w.orderStop(grace)
	}
	select {
	case <-w.over:
		return first, true
	default:
		return first, false
	}
}

func (w *watch) orderStop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(w.process.life, grace)
	defer cancel()
	end, err := w.process.order(ctx, plan.CommandStop, grace)
	select {
	case <-w.over:
		return
	default:
	}
	switch {
	case err != nil:
		w.process.Log.Warn("STOP cannot be run", "err", err)
	case !end.OK() && !end.Absent && (end.Code != nil || end.TimedOut): // otherwise it was ended with its process
		w.process.Log.Warn("STOP failed", "cause", end.Why, "stderr", w.process.logs.path(end.files.Stderr))
	}
}
