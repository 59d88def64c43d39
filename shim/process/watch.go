package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
	"github.com/muster-agent/muster/shim/wait"
)

// attend watches one start until its process is over: the answers of STATUS, and the time limit of START.
func (p *Process) attend(attempt, pid int) {
	w := p.watching()
	if w == nil {
		p.up(attempt)
		return
	}
	w.born(pid)
	w.run()
}

// watching is the watch of the current start; nil: no script runs it.
func (p *Process) watching() *watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.watch
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
	over    <-chan struct{} // closed when the process is proved to be over
	begun   chan struct{}   // closed when START has ended with 0 and left a service
	told    chan struct{}   // closed when it is asked to stop: from then on a missing service is no failure

	mu  sync.Mutex
	pid int // of START in its own pid namespace; 0: unknown
	// mute: the failure to run STATUS was logged.
	mute bool
	// asked: the process itself was asked to end, after STOP where there is one.
	asked bool
}

func newWatch(p *Process, attempt int, over <-chan struct{}) *watch {
	return &watch{
		process: p, attempt: attempt, script: p.Plan.Script, over: over,
		begun: make(chan struct{}), told: make(chan struct{}),
	}
}

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
			case <-w.told:
			case <-ctx.Done():
			}
		})
		w.follow(ctx)
	})
}

// follow asks STATUS until ctx ends.
func (w *watch) follow(ctx context.Context) {
	deadline := time.NewTimer(plan.Seconds(w.script.Timeout))
	defer deadline.Stop()
	health, starting, begun := script.Health{Deaf: !w.script.Has(plan.CommandStatus) ||
		w.script.StatusInterval == 0}, true, w.begun
	for {
		pause := plan.Seconds(w.script.StatusInterval)
		if !health.Up {
			pause = min(pause, eager)
		}
		var ask <-chan time.Time
		if !health.Deaf {
			ask = time.After(pause)
		} else if !health.Up {
			health = w.serving(health)
		}
		select {
		case <-ctx.Done():
			return
		case <-begun:
			starting, begun = false, nil
			health = w.serving(health)
		case <-deadline.C:
			if !w.served() && !health.Up { // both may have happened while STATUS was asked
				w.end(registry.ClassTimeout, fmt.Sprintf("START of %s was neither done nor serving after %g s",
					nameOf(w.script), w.script.Timeout))
				return
			}
		case <-ask:
			was := health.Up
			answer := w.ask(ctx)
			if ctx.Err() != nil {
				return // the process has ended or is to end: the answer does not count
			}
			health = health.Asked(answer, starting)
			if health.Up && !was {
				w.process.up(w.attempt)
			}
			if health.Dead() {
				w.end(registry.ClassApp, health.Cause())
				return
			}
		}
	}
}

// serving notes that the instance is up.
func (w *watch) serving(h script.Health) script.Health {
	if !h.Up {
		w.process.up(w.attempt)
	}
	h.Up = true
	return h
}

// mostStatus is the limit of one STATUS: one that hangs is a failure.
const mostStatus = time.Minute

// stop ends the judgement of an instance that is to end.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.told:
	default:
		close(w.told)
		w.asked = !w.script.Has(plan.CommandStop)
	}
}

// stopped notes that STOP is over: the process that START leaves after that must still be asked to end.
func (w *watch) stopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
}

// taken is called when the process that START has left is known.
func (w *watch) taken() {
	close(w.begun)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked {
		w.process.signalStop()
	}
}

// ask runs STATUS once. A STATUS that cannot be run (the disk is full, too many processes) is not the instance's fault.
func (w *watch) ask(ctx context.Context) script.Result {
	end, err := w.process.order(ctx, plan.CommandStatus, plan.Seconds(w.script.Timeout))
	if err != nil {
		w.unheard(ctx, err)
		return script.Result{NotRun: true, Why: err.Error()}
	}
	w.unheard(ctx, nil)
	return end.Result
}

// end ends a start that does not serve. The exit says why.
func (w *watch) end(class registry.Class, why string) {
	select {
	case <-w.over: // it has ended by itself
		return
	case <-w.told: // and has its grace
		return
	default:
	}
	w.process.Log.Warn("instance ended", "cause", why)
	w.process.Condemn(class, why, false)
	w.process.Kill()
}

// startEnded decides what follows when START has ended with 0: either it left the instance's process behind, or START
// was the process.
func (p *Process) startEnded(attempt, alive int) {
	w, guard := p.watching(), p.guards.now()
	if w == nil || w.attempt != attempt {
		return
	}
	ctx, cancel := context.WithCancel(p.life) // it ends with the process
	defer cancel()
	p.work.Go(func() {
		defer cancel()
		select {
		case <-w.over:
		case <-ctx.Done():
		}
	})
	left := script.Left{Alive: alive, PIDs: w.left()}
	next := left.Next()
	if next == script.Ask {
		answer := script.Result{Absent: true}
		if w.script.Has(plan.CommandStatus) {
			answer = w.answer(ctx)
		}
		left.Status = &answer
		next = left.Next()
	}
	var err error
	switch next {
	case script.Adopt:
		err = p.adopt(guard, left.PIDs[0])
		if err == nil {
			w.taken()
		}
	case script.Watch:
		p.Log.Info("START has left something behind that no pid file names: STATUS watches it", "processes", alive)
		w.taken()
	case script.Finish, script.Ask:
		err = guard.Finish()
	}
	if err != nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, os.ErrProcessDone) && ctx.Err() == nil {
		w.end(registry.ClassApp, err.Error())
	}
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

// answer is the answer of STATUS, retried until it can be run or the start is over.
func (w *watch) answer(ctx context.Context) script.Result {
	for {
		answer := w.ask(ctx)
		if !answer.NotRun || wait.For(ctx, eager) != nil {
			return answer
		}
	}
}

// left are the pid files that name another process than START, which may have written its own number.
func (w *watch) left() []script.PID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.process.pidFiles(w.process.filledScript()), func(p script.PID) bool {
		return p.PID == w.pid
	})
}

func (p *Process) adopt(guard *sandbox.Guard, left script.PID) error {
	err := guard.Adopt(left.PID)
	if errors.Is(err, sandbox.ErrNotOurs) {
		return fmt.Errorf("START ended with 0, and process %d of %s is none that it left behind", left.PID, left.File)
	}
	if err == nil {
		p.Log.Info("START has left the process behind", "pid", left.PID, "pid_file", left.File)
	}
	return err
}

// served tells that START has left the instance's process behind.
func (w *watch) served() bool {
	select {
	case <-w.begun:
		return true
	default:
		return false
	}
}

// lost is a process that START has left and that ended before START did: START's exit with 0 would look like a finished
// job.
func (w *watch) lost() (script.PID, bool) {
	files := w.left()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.served() || len(files) == 0 || w.pid == 0 {
		return script.PID{}, false
	}
	return files[0], true
}

// born notes START's number in its pid namespace, which START may write to a pid file.
func (w *watch) born(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pid = innerPID(pid)
}

// runStop runs STOP during the grace, then signals the process. The machine ends both when the grace is over.
func (w *watch) runStop(grace time.Duration) {
	ctx, cancel := context.WithCancel(w.process.life) // the grace bounds it
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
	w.stopped()
	w.process.signalStop()
}

// innerPID is a process's number in its innermost pid namespace; 0: it has ended (proc(5), NSpid).
func innerPID(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(numbers)
			n, err := strconv.Atoi(all[len(all)-1])
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
