package detach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
	"github.com/muster-agent/muster/shim/workdir"
)

// Files in the work folder with what the run prints: its result, and everything else.
const (
	Out = "run.out"
	Err = "run.err"
)

// Run is a `muster run` to start in a session of its own.
type Run struct {
	App     string         // app id
	Args    []string       // of muster: run, APP and its flags
	Env     []string       // of the process
	Dir     string         // which it starts in; empty: this command's
	WorkDir string         // it exists
	Own     bool           // the work folder has no files of a person's that are named as the run's output
	State   status.Dir     // of the run
	Limit   *time.Duration // longest wait for the installation; nil: none, and a timeout of 0 is no failure
	Begun   func()         // called when the run holds its work folder; may be nil
	Advice  string         // what to do about a run that ended with an error
}

// Start starts the run and returns when all instances are installed, when the run has ended, or after Limit. The run's
// exit code is in the error when it is not 0. installed is false for a run that ended before.
func (r Run) Start(ctx context.Context, s console.Streams) (installed bool, err error) {
	p, err := r.launch()
	if err != nil {
		return false, err
	}
	launched, ready, err := r.begun(ctx, p)
	if err != nil || !ready {
		return false, errors.Join(err, r.report(ctx, s, p))
	}
	if r.Begun != nil {
		r.Begun()
	}
	if r.Limit != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *r.Limit)
		defer cancel()
	}
	ready, err = r.installed(ctx, p, launched)
	count := appdef.Counted(len(launched), "instance")
	switch {
	case err == nil && ready:
		fmt.Fprintf(s.Out, "%s: started in the background (pid %d); %s installed\n", r.App, p.pid, count)
		r.hints(s)
		return true, nil
	case err == nil:
		if p.code == 0 {
			r.hints(s)
		}
		return false, r.report(ctx, s, p)
	case r.Limit == nil || !errors.Is(err, context.DeadlineExceeded):
		return false, err
	}
	fmt.Fprintf(s.Out, "%s: started in the background (pid %d); %s being installed\n", r.App, p.pid, count)
	r.hints(s)
	if *r.Limit == 0 {
		return true, nil
	}
	fmt.Fprintf(s.Err, "%s: not installed within %s; it goes on: muster status %s\n", r.App, *r.Limit, r.App)
	return true, exit.Silent{Code: exit.Timeout}
}

// process is a started run.
type process struct {
	pid   int
	ended chan struct{}
	code  int // once ended
}

// launch starts the process. A run that holds the work folder keeps its files: this one would end with 75 at once.
func (r Run) launch() (*process, error) {
	lock, err := workdir.LockRun(r.WorkDir)
	if fault.Is(err, registry.ClassHost) {
		return nil, exit.With(exit.Held, err)
	}
	if err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	defer func() { _ = lock.Release() }() // the run has it then, and nobody else can touch its files
	if err := r.claimOutputs(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args, given := mask.Hand(r.Args)
	cmd := exec.Command(self, args...)
	cmd.Env, cmd.Dir = append(slices.Clip(r.Env), given...), r.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var outputs [2]*os.File
	for i, name := range []string{Out, Err} {
		path := filepath.Join(r.WorkDir, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, exit.With(exit.Forbidden, err)
		}
		defer f.Close() // the process has its own
		outputs[i] = f
	}
	cmd.Stdout, cmd.Stderr = outputs[0], outputs[1]
	if err := lock.Start(cmd); err != nil {
		return nil, exit.With(exit.Internal, fmt.Errorf("start %s: %w", r.App, err))
	}
	p := &process{pid: cmd.Process.Pid, ended: make(chan struct{})}
	go func() { // it ends with the run, or with this command
		_ = cmd.Wait() // ProcessState says how it ended
		p.code = cmd.ProcessState.ExitCode()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			p.code = 128 + int(ws.Signal())
		}
		close(p.ended)
	}()
	return p, nil
}

// outputMark is the file beside the outputs that says that they are a run's.
const outputMark = ".run.outputs"

// claimOutputs refuses a folder in which a person has files of these names: they would be replaced.
func (r Run) claimOutputs() error {
	mark := filepath.Join(r.WorkDir, outputMark)
	_, err := os.Lstat(mark)
	if r.Own || err == nil {
		return nil
	}
	for _, name := range []string{Out, Err} {
		if _, err := os.Lstat(filepath.Join(r.WorkDir, name)); err == nil {
			return exit.Usagef("work folder %s has a %s that is not muster's and would be replaced: give --work-dir a "+
				"folder of its own", r.WorkDir, name)
		}
	}
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return exit.With(exit.Forbidden, f.Close())
}

// poll is how often a starting run is asked.
const poll = 50 * time.Millisecond

// begun waits until the run has written its app.json, which names the instances that it launches. It is false when the
// run ended before. The error is the context's.
func (r Run) begun(ctx context.Context, p *process) (launched []string, ready bool, err error) {
	ready, err = r.await(ctx, p, func(f *apps.Facts) bool {
		launched = f.Local.Instances
		return true
	})
	return launched, ready, err
}

// installed waits until these instances are installed. It is false when the run ended before. The error is the
// context's.
func (r Run) installed(ctx context.Context, p *process, instances []string) (bool, error) {
	return r.await(ctx, p, func(f *apps.Facts) bool {
		return holds(f) || !slices.ContainsFunc(instances, func(in string) bool { return !isInstalled(f, in) })
	})
}

// holds tells that a container is kept for people to look: its process has run, so all were installed, and may be gone.
func holds(f *apps.Facts) bool {
	for _, st := range f.States {
		if machine.Phase(st.Phase) == machine.Holding {
			return true
		}
	}
	return false
}

// await waits until the facts of the run, which has begun, are as wanted.
func (r Run) await(ctx context.Context, p *process, want func(*apps.Facts) bool) (bool, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		facts, err := apps.Lookup{State: r.State}.OnHost(ctx, r.App)
		if err != nil {
			return false, err
		}
		if facts.Local != nil && facts.Local.Pid == p.pid && want(&facts) {
			return true, nil
		}
		select {
		case <-p.ended:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// isInstalled tells that an instance is installed, or was and has ended in this run. One that failed before its process
// started is not, whatever its phase: the run launches it again, or ends.
func isInstalled(f *apps.Facts, in string) bool {
	st, live := f.States[in]
	if !live { // last.json may be of the run before, and of the same second
		last, left := f.Lasts[in]
		return left && last.Attempt > 0 && !last.Since.Before(f.Local.Started)
	}
	switch phase := machine.Phase(st.Phase); {
	case slices.Contains([]machine.Phase{machine.Installed, machine.Waiting}, phase):
		return true
	case slices.Contains([]machine.Phase{machine.Starting, machine.Claiming, machine.Standby, machine.Staging}, phase):
		return false
	}
	return st.Attempt > 0
}

// hints print where to look.
func (r Run) hints(s console.Streams) {
	logs, page := r.WorkDir, ""
	if f := (status.AppFile{}); status.ReadJSON(filepath.Join(r.WorkDir, "app.json"), &f) == nil {
		logs, page = f.LogDir, flags.PageOf(r.App, f.Registry)
	}
	named := r.App
	typed := flags.State{Dir: os.Getenv("MUSTER_AGENT_STATE_DIR")} // of a command without the flag
	if r.State != typed.Resolve() {
		named += " --state-dir " + string(r.State)
	}
	fmt.Fprintf(s.Out, "  logs     %s (muster logs %s)\n  work     %s\n  run      %s\n",
		logs, named, r.WorkDir, filepath.Join(r.WorkDir, Err))
	if page != "" {
		fmt.Fprintf(s.Out, "  page     %s\n", page)
	}
}

// mostLines is how much of run.err is printed of a run that failed.
const mostLines = 40

// report prints how a run ended, and returns its exit code. It prints nothing of a run that goes on.
func (r Run) report(ctx context.Context, s console.Streams, p *process) error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	if text, err := os.ReadFile(filepath.Join(r.WorkDir, Out)); err == nil {
		fmt.Fprint(s.Out, string(text))
	}
	if p.code == 0 {
		return nil
	}
	path := filepath.Join(r.WorkDir, Err)
	show := &tail.Lines{Show: func(line string) {
		if !strings.HasPrefix(line, "warning: ") { // the definition's: this command has printed them
			fmt.Fprintln(s.Err, line)
		}
	}}
	for part, from := range tail.Parts(path, mostLines) {
		_ = status.Follow(ctx, part, from, false, show) // the message below names the file
	}
	show.Flush()
	advice := ""
	if r.Advice != "" {
		advice = "; " + r.Advice
	}
	fmt.Fprintf(s.Err, "%s: its run ended with %d: all that it said is in %s%s\n", r.App, p.code, path, advice)
	return exit.Silent{Code: p.code}
}
