package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/run"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// stateDir is where the run's sockets are: as said now, else as said when it was made, else the host's.
func (p *sliderWords) stateDir(made string) status.Dir {
	f := flags.State{Dir: p.one("--state-dir")}
	if f.Dir == "" {
		f.Dir = made
	}
	return f.Resolve()
}

// lookup is where this app is asked about. Before it is made there is no record.
func (a *sliderApp) lookup(s console.Streams, p *sliderWords) apps.Lookup {
	at, _ := registry.ParseAddress(a.record.Run.Registry) // it was checked when it was written; empty: one of the run's own
	return apps.Lookup{State: p.stateDir(a.record.Run.StateDir), Address: at, Named: true, Warn: s.Err}
}

// openLocked finds the app that the command line names, and keeps others from it.
func (p *sliderWords) openLocked() (*sliderApp, *hostlock.Lock, error) {
	name, err := p.name()
	if err != nil {
		return nil, nil, err
	}
	home, err := openSliderHome()
	if err != nil {
		return nil, nil, err
	}
	lock, err := home.lock(name)
	if err != nil {
		return nil, nil, err
	}
	a, err := home.open(name)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release())
	}
	return a, lock, nil
}

// sliderRuns tells whether the app has a run on this host that is not over.
func sliderRuns(f *apps.Facts) bool {
	return f.Local != nil && (f.Living() || f.Result == nil && status.ProcessLives(f.Local.Pid))
}

// sliderStart runs an app again, from its checkpoints.
func sliderStart(ctx context.Context, s console.Streams, p *sliderWords) error {
	if _, _, err := p.wait(); err != nil {
		return err
	}
	a, lock, err := p.openLocked()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // an app that runs is locked by its work folder
	facts, err := a.lookup(s, p).OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	if sliderRuns(&facts) {
		return exit.With(exit.Held, fmt.Errorf("%s runs already: muster slider status %s says more", a.name, a.name))
	}
	a.record.Run.take(p)
	if err := a.record.check(s, a.dir); err != nil {
		return err
	}
	if err := errors.Join(a.record.tidy(a.dir), a.record.write(a.dir)); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return a.start(ctx, s, p, lock)
}

// background is a `muster run` that outlives this command.
type background struct {
	pid   int
	ended chan struct{}
	code  int // once ended
}

// launch starts the run in a session of its own: the end of this shell is not its end.
func (a *sliderApp) launch() (*background, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "slider", "background", a.name)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MUSTER_AGENT_") }) // the record has what they said
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+filepath.Dir(filepath.Dir(filepath.Dir(a.dir))))                    // it may be relative
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var files []*os.File
	for _, name := range []string{sliderOut, sliderErr} {
		f, err := os.OpenFile(a.path(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, exit.With(exit.Forbidden, err)
		}
		defer f.Close() // the child has its own
		files = append(files, f)
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	if err := cmd.Start(); err != nil {
		return nil, exit.With(exit.Internal, fmt.Errorf("start %s: %w", a.name, err))
	}
	b := &background{pid: cmd.Process.Pid, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState has it whole
		b.code = cmd.ProcessState.ExitCode()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			b.code = 128 + int(ws.Signal())
		}
		close(b.ended)
	}()
	return b, nil
}

// sliderBackground is what launch starts: `muster run` of a stored app. What the instances write stands in their own
// logs, which are rotated; here it would grow without end.
func sliderBackground(ctx context.Context, s console.Streams, p *sliderWords) error {
	name, err := p.name()
	if err != nil {
		return err
	}
	home, err := openSliderHome()
	if err != nil {
		return err
	}
	a, err := home.open(name)
	if err != nil {
		return err
	}
	args, err := a.runArgs()
	if err != nil {
		return err
	}
	cmd := newRun(console.Streams{In: s.In, Out: s.Out, Err: withoutOutput{s.Err}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.With(exit.Usage, err) })
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

// runArgs are the arguments of the app's `muster run`.
func (a *sliderApp) runArgs() ([]string, error) {
	r := a.record.Run
	args := []string{
		a.path(a.record.Definition), "--app-id", a.name, "--work-dir", a.work(), "--state-dir", r.StateDir,
		"--output", run.OutputLines, fmt.Sprintf("--require-limits=%t", r.Strict),
	}
	for _, f := range [][2]string{{"--registry", r.Registry}, {"--engine", r.Engine}, {"--policy", r.Policy}, {"--host", r.Host}, {"--ports", r.Ports}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	for _, e := range r.Env {
		args = append(args, "--env", e)
	}
	app := a.record.appFlags(a.dir)
	more, err := app.Args()
	return append(args, more...), err
}

// withoutOutput passes on what a run says, without the lines that it repeats of its instances.
type withoutOutput struct{ to io.Writer }

// ofInstance is a line of an instance's output as `muster run` repeats it, and not what happens to the instance.
var ofInstance = regexp.MustCompile(`^[\w.~-]+-\d+ *\| `)

func (w withoutOutput) Write(line []byte) (int, error) {
	if at := ofInstance.FindIndex(line); at != nil && !strings.HasPrefix(string(line[at[1]:]), "muster: ") {
		return len(line), nil
	}
	return w.to.Write(line)
}

// start runs the app in the background, and waits until all instances are installed, the run is over, or --wait is.
func (a *sliderApp) start(ctx context.Context, s console.Streams, p *sliderWords, lock *hostlock.Lock) error {
	limit, limited, err := p.wait()
	if err != nil {
		return err
	}
	app, err := a.definition()
	if err != nil {
		return err
	}
	want := plan.Instances(&app)
	b, err := a.launch()
	if err != nil {
		return err
	}
	k := a.lookup(s, p)
	if begun, err := a.await(ctx, k, b, nil); err != nil || !begun {
		return errors.Join(err, a.ended(s, b))
	}
	_ = lock.Release() // from here on the run's own folder is the lock
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	begun, err := a.await(ctx, k, b, want)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(s.Out, "%s: started in the background (pid %d); %s being installed\n", a.name, b.pid, appdef.Counted(len(want), "instance"))
	case err != nil:
		return err
	case !begun:
		if b.code == 0 {
			a.say(s)
		}
		return a.ended(s, b)
	default:
		fmt.Fprintf(s.Out, "%s: started in the background (pid %d); %s installed\n", a.name, b.pid, appdef.Counted(len(want), "instance"))
	}
	a.say(s)
	if err := a.writeReport(s, p); err != nil {
		return err
	}
	if err != nil && limit > 0 {
		return exit.Silent{Code: exit.Timeout}
	}
	return nil
}

// say tells where to look.
func (a *sliderApp) say(s console.Streams) {
	fmt.Fprintf(s.Out, "  logs     %s (muster logs %s)\n  work     %s\n  exports  muster slider exports %s\n  run      %s\n",
		filepath.Join(a.work(), "log"), a.name, a.work(), a.name, a.path(sliderErr))
}

// ended shows how the run was over, and is its exit code.
func (a *sliderApp) ended(s console.Streams, b *background) error {
	select {
	case <-b.ended:
	default:
		return nil // it is this command that is
	}
	if text, err := os.ReadFile(a.path(sliderOut)); err == nil {
		fmt.Fprint(s.Out, string(text))
	}
	if b.code == 0 {
		return nil
	}
	for _, line := range run.TailOf(a.path(sliderErr), 0, 2*run.ReportLines) {
		fmt.Fprintln(s.Err, line)
	}
	fmt.Fprintf(s.Err, "%s: its run ended with %d: all that it said is in %s; muster slider update and start try again, destroy --force removes it\n", a.name, b.code, a.path(sliderErr))
	return exit.Silent{Code: b.code}
}

// sliderPoll is how often a run is looked at that comes up.
const sliderPoll = 50 * time.Millisecond

// await waits until the run has begun and these instances are installed. false: it ended before. The error is the context's.
func (a *sliderApp) await(ctx context.Context, k apps.Lookup, b *background, want []registry.Instance) (bool, error) {
	tick := time.NewTicker(sliderPoll)
	defer tick.Stop()
	for {
		facts, err := k.OnHost(ctx, a.name)
		if err != nil {
			return false, err
		}
		if facts.Local != nil && facts.Local.Pid == b.pid && !slices.ContainsFunc(want, func(in registry.Instance) bool { return notInstalled(&facts, in) }) {
			return true, nil
		}
		select {
		case <-b.ended:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// notInstalled tells that an instance has not got as far as to be staged.
func notInstalled(f *apps.Facts, in registry.Instance) bool {
	st, lives := f.States[in.String()]
	if !lives { // or it has ended; what a run before this one left may be of the same second
		last, left := f.Lasts[in.String()]
		return !left || last.Since.Before(f.Local.Started)
	}
	return slices.Contains([]machine.Phase{machine.Starting, machine.Claiming, machine.Staging}, machine.Phase(st.Phase))
}
