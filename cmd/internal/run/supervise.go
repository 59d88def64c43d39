package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/signals"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wait"
)

// end is how a run is over.
type end struct {
	verdict     *registry.Verdict
	interrupted syscall.Signal // TERM to this process: no verdict, the run resumes when launched again
	failure     error          // the agents could not do their work at all
}

// supervise launches the agents, relaunches those that die, and ends with the verdict.
func (r *runner) supervise(ctx context.Context) error {
	crew := r.crew(ctx)
	if err := r.writeAppFiles(crew.wantedInstances()); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it so
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	r.say("%s: work folder %s", r.appID, r.workDir)
	if page := flags.PageOf(r.appID, r.address); page != "" {
		r.say("%s: page %s", r.appID, page)
	}

	if err := crew.engage(); err != nil {
		r.each(func(c *child) { c.send(syscall.SIGKILL) })
		return exit.With(exit.Internal, err)
	}
	watch, stopWatch := context.WithCancel(ctx)
	verdicts, directives := make(chan registry.Verdict, 1), make(chan registry.Directive)
	var watchers sync.WaitGroup
	watchers.Go(func() { r.follow(watch, directives, verdicts) })
	crew.show(ctx)
	e := r.attend(ctx, signals, crew, directives, verdicts)
	stopWatch()
	watchers.Wait()
	crew.hide()
	return r.finish(e)
}

// follow hands on what the conductor says until there is a verdict. The first agent founds the app.
func (r *runner) follow(ctx context.Context, directives chan<- registry.Directive, verdicts chan<- registry.Verdict) {
	see := func(d registry.Directive) {
		select {
		case directives <- d:
		case <-ctx.Done():
		}
	}
	wait.Until(ctx, func() bool {
		v, err := r.client.Follow(ctx, r.appID, r.runID, see)
		if err == nil {
			verdicts <- v
		}
		return !errors.Is(err, registry.ErrNoApp)
	})
}

// attend is the run's loop: signals, deaths of agents, the verdict. It returns when no agent is left.
func (r *runner) attend(
	ctx context.Context, heard <-chan os.Signal, crew *crew, directives <-chan registry.Directive,
	verdicts <-chan registry.Verdict,
) end {
	var e end
	var echo signals.Repeat
	asked := 0
	for r.living() > 0 {
		select {
		case v := <-verdicts:
			e.verdict = &v
		case sig := <-heard:
			if echo.Again(sig, time.Now()) {
				continue
			}
			asked++
			r.interrupt(ctx, sig, asked, &e)
		case d := <-directives:
			if asked == 0 && e.failure == nil {
				crew.resize(ctx, d, &e)
			}
		case d := <-crew.deaths:
			d.child.take()
			if e.verdict == nil && e.interrupted == 0 && asked == 0 && e.failure == nil {
				r.relaunch(ctx, d, crew, verdicts, &e)
			}
			if e.verdict != nil && asked == 0 {
				r.complete(d, crew)
			}
		}
	}
	if e.verdict == nil {
		e.verdict = r.lastVerdict(ctx, verdicts)
	}
	return e
}

// lastVerdict looks once more: the last agent may have gone before its verdict was heard of.
func (r *runner) lastVerdict(ctx context.Context, verdicts <-chan registry.Verdict) *registry.Verdict {
	select {
	case v := <-verdicts:
		return &v
	default:
	}
	// The run may have been called off: its verdict is wanted all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	v, err := r.client.Verdict(ctx, r.appID, r.runID)
	if err != nil {
		return nil
	}
	return v
}

// interrupt: Ctrl-C ends the run with the verdict `stopped`; TERM, and HUP of a terminal that is closed, leave it to be
// taken up again; a second of any makes the grace zero.
func (r *runner) interrupt(ctx context.Context, sig os.Signal, asked int, e *end) {
	switch {
	case asked > 1:
		r.say("%s: killing every process now", r.appID)
		// Two different ones: of two of a kind the kernel delivers one.
		r.each(func(c *child) { c.send(syscall.SIGTERM); c.send(syscall.SIGINT) })
	case sig != syscall.SIGINT:
		e.interrupted, _ = sig.(syscall.Signal)
		r.say("%s: %s: stopping in grace; %s", r.appID, registry.SignalName(int(e.interrupted)), r.howToResume())
		r.each(func(c *child) { c.send(syscall.SIGTERM) })
	default:
		r.say("%s: stopping: every process gets its stop signal and its grace, checkpoints are kept; "+
			"Ctrl-C again kills", r.appID)
		ask := registry.Ask{Kind: registry.AskStop, ID: shim.NewID(), By: "interrupt"}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := r.client.Ask(ctx, r.appID, ask); err != nil {
			r.say("%s: the registry does not take it (%v): stopping the agents themselves", r.appID, err)
			e.interrupted = syscall.SIGINT
			r.each(func(c *child) { c.send(syscall.SIGTERM) })
		}
	}
}

// relaunch starts an agent again that died without a verdict, as a resource manager would.
func (r *runner) relaunch(ctx context.Context, d ended, crew *crew, verdicts <-chan registry.Verdict, e *end) {
	if v := r.lastVerdict(ctx, verdicts); v != nil {
		e.verdict = v
		return
	}
	if crew.dismissed(ctx, d.child) {
		return
	}
	again := d.signal != 0 || d.code == 128+int(syscall.SIGTERM) || d.code == 128+int(syscall.SIGINT) ||
		d.signal == 0 && d.code == 0 // it left for a flex, and another has brought its index back
	// It could not be staged, and muster.retry, which has pauses of its own, tries again.
	retried := d.signal == 0 && d.code == exit.Held && crew.gangRetried(ctx)
	if retried || again && d.child.mayRelaunch(time.Now()) {
		r.say("%s: agent ended by %s: launching it again", d.child.instance, how(d))
		err := crew.launch(d.child)
		if err == nil {
			return
		}
		e.failure = err
	}
	if e.failure == nil {
		e.failure = agentError{d}
	}
	r.each(func(c *child) { c.send(syscall.SIGTERM) })
}

// complete starts an agent again that was killed after the verdict: it finds that, and gives the outputs of its
// instance their names.
func (r *runner) complete(d ended, crew *crew) {
	c := r.app.Component(d.child.instance.Component)
	if d.signal == 0 || c == nil || !data.LeavesOutputs(*c) || !d.child.mayRelaunch(time.Now()) {
		return
	}
	r.say("%s: agent ended by %s after the verdict: launching it again to finish its outputs", d.child.instance, how(d))
	if err := crew.launch(d.child); err != nil {
		r.say("%s: %v", d.child.instance, err)
	}
}

// agentError is an agent that ended without a verdict.
type agentError struct{ ended }

func (e agentError) Error() string {
	return fmt.Sprintf(causeAgentEnded, e.child.instance, how(e.ended))
}

func how(d ended) string {
	if d.signal != 0 {
		return "signal " + d.signal.String()
	}
	return fmt.Sprintf("exit code %d", d.code)
}

func (r *runner) each(do func(*child)) {
	for _, c := range r.agents {
		do(c)
	}
}

func (r *runner) living() int {
	n := 0
	r.each(func(c *child) {
		if c.live() {
			n++
		}
	})
	return n
}

// say prints one line; a table that is being shown goes on below it.
func (r *runner) say(format string, args ...any) {
	r.screen.Lock()
	defer r.screen.Unlock()
	r.drawn = 0
	fmt.Fprintf(r.streams.Err, format+"\n", args...)
}

func (r *runner) writeAppFiles(instances []registry.Instance) error {
	file := status.AppFile{
		Version: 1, App: r.appID, Name: r.app.Name, Run: r.runID, Registry: r.address,
		WorkDir: r.workDir, LogDir: r.logDir, Pid: os.Getpid(), Started: status.Stamp(r.started),
	}
	for _, in := range instances {
		file.Instances = append(file.Instances, in.String())
	}
	var errs []error
	for _, dir := range r.resultDirs() {
		errs = append(errs, status.WriteJSON(filepath.Join(dir, "app.json"), file))
		if err := os.Remove(filepath.Join(dir, "result.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// resultDirs are where app.json and result.json lie.
func (r *runner) resultDirs() []string { return []string{r.state.App(r.appID), r.workDir} }
