package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
	"github.com/muster-agent/muster/shim/status"
)

// registryNobody is the roster before there is one.
var registryNobody registry.Roster

// noFramework gives nothing: what a framework says needs a roster.
func noFramework(plan.Plan, registry.Roster) (env, files map[string]string) { return nil, nil }

// scriptError is a command of the package that failed before there was anything to start again.
type scriptError struct {
	error
	code     *int // its own; nil: by a signal or for its time
	timedOut bool
}

// exitOf is the end of the command that a staging failed for; nil when it was none.
func exitOf(err error) *shim.Exit {
	if failed, ok := errors.AsType[scriptError](err); ok {
		return &shim.Exit{Code: failed.code}
	}
	return nil
}

// install runs INSTALL in the parked container and takes away what it left running.
func (a *agent) install(ctx context.Context, p plan.Plan) error {
	s := p.Script
	if s == nil || !s.Has(plan.CommandInstall) {
		return nil
	}
	end, err := a.order(ctx, plan.CommandInstall, seconds(s.Timeout))
	if err != nil {
		return notRun(s, err)
	}
	if err := a.currentGuard().Sweep(ctx); err != nil {
		return fmt.Errorf("INSTALL: end what it left: %w", err)
	}
	if end.OK() {
		a.log.Info("INSTALL done", "output", end.files.Stdout)
		return nil
	}
	return scriptError{fmt.Errorf("INSTALL of %s: %s (%s)", nameOf(s), end.Why, a.inLogs(end.files.Stderr)), end.Code, end.TimedOut}
}

// notRun says why INSTALL could not be run. A missing interpreter stays missing.
func notRun(s *plan.Script, err error) error {
	_, start := errors.AsType[*sandbox.StartError](err)
	switch {
	case start && errors.Is(err, fs.ErrNotExist) && s.File != "":
		return definitionError{fmt.Errorf("INSTALL: %w; the scripts need Python 3.8 or newer, there as %s: put it into the image or onto the host, or name another by muster.python", err, s.Python)}
	case start && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC)):
		return definitionError{fmt.Errorf("INSTALL: %w", err)}
	}
	return fmt.Errorf("INSTALL: %w", err)
}

// nameOf is what a person calls the script.
func nameOf(s *plan.Script) string {
	if s.File != "" {
		return s.File
	}
	return "metainfo's commands"
}

// pathOf is where the script lies for who runs it.
func pathOf(s *plan.Script) string { return filepath.Join(s.Folder, s.File) }

func (a *agent) inLogs(name string) string { return filepath.Join(a.instanceLogs(), name) }

// attend watches one start until its process is over: what STATUS says, and how long START may take.
func (r engineRoom) attend(attempt, pid int) {
	r.mu.Lock()
	w := r.watch
	r.mu.Unlock()
	if w == nil {
		r.up(attempt)
		return
	}
	w.born(pid)
	go w.run()
}

// up says that the instance serves.
func (a *agent) up(attempt int) {
	a.loop.Tell(shim.Event{Kind: shim.Up, Attempt: attempt})
}

// watch is one start of an instance that scripts run.
type watch struct {
	*agent
	attempt int
	script  *plan.Script
	over    <-chan struct{} // the process is over, proved
	begun   chan struct{}   // closed when START has ended with 0 and something of it serves
	told    chan struct{}   // closed when it is told to stop: that it serves no more is no failure then

	mu  sync.Mutex
	pid int // of START in its own pid namespace; 0: unknown
	// mute: that STATUS cannot be run has been said.
	mute bool
	// asked: the process itself was asked to end, after STOP where there is one.
	asked bool
}

// eager is how often STATUS is asked until it is answered with yes.
const eager = time.Second

// run asks STATUS, first often, until the process is over.
func (w *watch) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-w.over:
			cancel()
		case <-w.told:
			cancel()
		case <-ctx.Done():
		}
	}()
	deadline := time.NewTimer(seconds(w.script.Timeout))
	defer deadline.Stop()
	health, starting, begun := script.Health{Deaf: !w.script.Has(plan.CommandStatus) || w.script.StatusInterval == 0}, true, w.begun
	for {
		pause := seconds(w.script.StatusInterval)
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
			if !w.served() && !health.Up { // both may have come while STATUS was asked
				w.end(registry.ClassTimeout, fmt.Sprintf("START of %s was neither done nor serving after %g s", nameOf(w.script), w.script.Timeout))
				return
			}
		case <-ask:
			was := health.Up
			answer := w.ask(ctx)
			if ctx.Err() != nil {
				return // it was ended with its app, or says nothing of one that is to end
			}
			health = health.Asked(answer, starting)
			if health.Up && !was {
				w.up(w.attempt)
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
		w.up(w.attempt)
	}
	h.Up = true
	return h
}

// mostStatus bounds one STATUS: one that hangs is a failure, and the next is waiting.
const mostStatus = time.Minute

// stop has nobody judge what is to end.
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

// stopped notes that STOP is over. What START leaves behind after that was asked nothing: START was.
func (w *watch) stopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
}

// taken is called when what START has left behind is known.
func (w *watch) taken() {
	close(w.begun)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked {
		w.signalProcess()
	}
}

// ask runs STATUS once. That it could not be run, for a disk is full or too much runs already, is not the instance's fault.
func (w *watch) ask(ctx context.Context) script.Result {
	end, err := w.order(ctx, plan.CommandStatus, seconds(w.script.Timeout))
	if err != nil {
		w.unheard(ctx, err)
		return script.Result{NotRun: true, Why: err.Error()}
	}
	w.unheard(ctx, nil)
	return end.Result
}

// end ends a start that does not serve; its exit says why.
func (w *watch) end(class registry.Class, why string) {
	select {
	case <-w.over: // it has ended by itself
		return
	case <-w.told: // and has its grace
		return
	default:
	}
	w.log.Warn("the instance is ended", "cause", why)
	w.agent.condemn(class, why)
	if err := w.currentGuard().Kill(); err != nil && !errors.Is(err, sandbox.ErrGone) {
		w.log.Warn("kill", "err", err)
	}
}

// condemn says why the process under way is ended, whatever its exit will look like.
func (a *agent) condemn(class registry.Class, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.blamed.ended {
		a.blamed = blame{class: class, why: why, at: time.Now(), ended: true, whatever: true}
	}
}

// startEnded decides what follows when START has ended with 0: what it left behind is the instance, or it was itself.
func (a *agent) startEnded(attempt, alive int) {
	a.mu.Lock()
	w, guard, over := a.watch, a.guard, a.over
	a.mu.Unlock()
	if w == nil || w.attempt != attempt {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
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
		err = a.adopt(guard, left.PIDs[0])
		if err == nil {
			w.taken()
		}
	case script.Watch:
		a.log.Info("START has left something behind that no pid file names: STATUS watches it", "processes", alive)
		w.taken()
	case script.Finish, script.Ask:
		err = guard.Finish()
	}
	if err != nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, os.ErrProcessDone) && ctx.Err() == nil {
		w.end(registry.ClassApp, err.Error())
	}
}

// unheard says once that STATUS cannot be run, until it could be again.
func (w *watch) unheard(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !w.mute && ctx.Err() == nil {
		w.log.Warn("STATUS cannot be run", "err", err)
	}
	w.mute = err != nil
}

// answer is STATUS's, asked until it could be run or the start is over.
func (w *watch) answer(ctx context.Context) script.Result {
	for {
		answer := w.ask(ctx)
		if !answer.NotRun {
			return answer
		}
		select {
		case <-ctx.Done():
			return answer
		case <-time.After(eager):
		}
	}
}

// left are the pid files that name another process than START itself, which may have written its own number.
func (w *watch) left() []script.PID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.pidFiles(w.filledScript()), func(p script.PID) bool { return p.PID == w.pid })
}

func (a *agent) adopt(guard *sandbox.Guard, left script.PID) error {
	err := guard.Adopt(left.PID)
	if errors.Is(err, sandbox.ErrNotOurs) {
		return fmt.Errorf("START ended with 0, and process %d of %s is none that it left behind", left.PID, left.File)
	}
	if err == nil {
		a.log.Info("START has left the process behind", "pid", left.PID, "pid_file", left.File)
	}
	return err
}

// served tells that what START had left behind was the instance.
func (w *watch) served() bool {
	select {
	case <-w.begun:
		return true
	default:
		return false
	}
}

// lost is what START has left behind and what was gone before START was: with 0 as its own exit it looks like a job
// that is done.
func (w *watch) lost() (script.PID, bool) {
	files := w.left()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.served() || len(files) == 0 || w.pid == 0 {
		return script.PID{}, false
	}
	return files[0], true
}

// born notes START's own number in its pid namespace, which it may write to a pid file itself.
func (w *watch) born(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pid = innerPID(pid)
}

// innerPID is a process's number in the innermost pid namespace that it is in; 0 when it is gone already (proc(5), NSpid).
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

// pidFiles are those in the instance's own folders, pid_file first.
func (a *agent) pidFiles(s *plan.Script) []script.PID {
	var found []script.PID
	for _, path := range a.pidPaths(s) {
		text, err := a.readOwn(path)
		if err != nil {
			continue
		}
		if pid, ok := script.ParsePID(text); ok {
			found = append(found, script.PID{File: path, PID: pid})
		} else {
			a.log.Warn("pid file", "file", path, "err", "got no number")
		}
	}
	return found
}

// pidPaths are where pid files may be: what the configuration names, and all of its folder for them.
func (a *agent) pidPaths(s *plan.Script) []string {
	paths := []string{}
	if own := script.PIDFile(s); own != "" {
		paths = append(paths, filepath.Clean(own))
	}
	dir := script.PIDFolder(s)
	work, name, err := a.ownFolderOf(dir)
	if err != nil {
		return paths
	}
	defer work.Close()
	folder, err := work.OpenRoot(name)
	if err != nil {
		return paths
	}
	defer folder.Close()
	list, err := folder.Open(".")
	if err != nil {
		return paths
	}
	defer list.Close()
	entries, err := list.ReadDir(mostPIDFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return paths
	}
	var more []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); strings.HasSuffix(path, ".pid") && !slices.Contains(paths, path) {
			more = append(more, path)
		}
	}
	slices.Sort(more)
	return append(paths, more...)
}

// mostPIDFiles is how many entries of the folder for them are looked at.
const mostPIDFiles = 256

// ownFolderOf opens whichever of the instance's folders holds a path, and names it from there on. A link in it that leads to
// another instance's, or to the package that all share, leads nowhere.
func (a *agent) ownFolderOf(path string) (workRoot, string, error) {
	for _, dir := range []string{a.currentPlan().Process.Folder, a.instanceLogs()} {
		if !within(path, dir) {
			continue
		}
		work, err := openWork(dir)
		if err != nil {
			return workRoot{}, "", err
		}
		name, err := work.name(path)
		if err != nil {
			return workRoot{}, "", errors.Join(err, work.Close())
		}
		return work, name, nil
	}
	return workRoot{}, "", fmt.Errorf("%s is in no folder of the instance", path)
}

// mostPID is more than a pid file has, in bytes.
const mostPID = 64

// readOwn reads a small file in the instance's folders. Its process may put something else in its place at any moment: a
// pipe that nobody fills must not hold the agent up.
func (a *agent) readOwn(path string) (string, error) {
	work, name, err := a.ownFolderOf(path)
	if err != nil {
		return "", err
	}
	defer work.Close()
	if info, err := work.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s: %w", path, status.ErrNotPlain))
	}
	f, err := work.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s: %w", path, status.ErrNotPlain))
	}
	text, err := io.ReadAll(io.LimitReader(f, mostPID+1))
	if err == nil && len(text) > mostPID {
		err = fmt.Errorf("%s: longer than %d bytes", path, mostPID)
	}
	return string(text), err
}

// forgetPIDs takes the pid files of the last start away: all that they name is proved gone, and their numbers may be
// others' by now.
func (a *agent) forgetPIDs(s *plan.Script) {
	for _, path := range a.pidPaths(s) {
		work, name, err := a.ownFolderOf(path)
		if err != nil {
			continue
		}
		if err := errors.Join(work.Remove(name), work.Close()); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.log.Warn("take a pid file away", "err", err)
		}
	}
}

// stopScript gives STOP the grace, then asks the process itself. The machine ends both when the grace is over.
func (r engineRoom) stopScript(over <-chan struct{}, grace time.Duration) {
	r.mu.Lock()
	w := r.watch
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	end, err := r.order(ctx, plan.CommandStop, grace)
	select {
	case <-over:
		return
	default:
	}
	switch {
	case err != nil:
		r.log.Warn("STOP", "err", err)
	case !end.OK() && !end.Absent && (end.Code != nil || end.TimedOut): // else it was ended together with its process
		r.log.Warn("STOP failed", "cause", end.Why, "stderr", r.inLogs(end.files.Stderr))
	}
	w.stopped()
	r.signalProcess()
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
