package submit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
)

// waiter waits for the end of a job. Whatever may take its time is a task beside its loop, which hears of it and of
// Ctrl-C.
type waiter struct {
	*submission
	watch  watcher // the task "registry" owns it
	tasks  tasks
	st     *consul.Status // of our run, as the registry told it last; nil: nobody of it is known
	nobody bool           // the registry has just said so

	state job.State // the launcher's last word
	heard bool      // it answered the last question

	jobOver time.Time // since when the launcher says that the job is over; zero: it does not
	runOver time.Time // since when the run is over in the registry; zero: it is not

	interrupts int
	ending     bool      // the launcher was asked to end the job, and has not refused
	asked      time.Time // when it was asked last
}

const (
	// endGrace is how long a launcher may take to see that all agents have ended, before it is asked to end the job.
	endGrace = 10 * time.Second
	// endPatience is how long the launcher's own word for the end is waited for after that.
	endPatience = time.Minute
)

// wait waits until the job is over, and gives its verdict as the exit code. From here on Ctrl-C is a question to it:
// begun is called when it is heard here, and tells that there was none before.
func (s *submission) wait(ctx context.Context, begun func() bool) error {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if !begun() {
		signal.Stop(signals)
		return s.undo(ctx)
	}
	x := &waiter{submission: s, watch: watcher{
		registry: s.Registry, app: s.app(), address: s.registry(), ours: s.ours, workers: Workers(&s.def), hbox: s.HBox,
		print: func(line string) { fmt.Fprintln(s.Err, line) },
	}}
	if s.HBox {
		_, end := s.client.Hints()
		x.watch.print("To kill this job: muster stop " + s.app() + " --registry " + s.registry().String() +
			", or " + end)
	}
	if err := x.loop(ctx, signals); err != nil {
		return err
	}
	return x.end(ctx)
}

// loop returns when nothing more is to be waited for, or with the error that this command is left by. From then on
// Ctrl-C ends this command: a task may hang at a folder that does not answer.
func (x *waiter) loop(ctx context.Context, signals chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer x.tasks.wg.Wait()
	defer signal.Stop(signals)
	defer cancel()
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	x.tasks.start("tidy", func() func() {
		x.tidy(ctx, x.watch.print)
		return func() {}
	})
	x.look(ctx)
	for !x.done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-signals:
			if err := x.interrupt(ctx); err != nil {
				return err
			}
		case then := <-x.tasks.then:
			then()
		case <-tick.C:
			x.look(ctx)
		}
	}
	return nil
}

// look asks the registry and the launcher once, each where the last answer has come.
func (x *waiter) look(ctx context.Context) {
	x.tasks.start("registry", func() func() {
		x.watch.look(ctx)
		st, nobody := x.watch.st, x.watch.st == nil && !x.watch.silent
		return func() { x.st, x.nobody = st, nobody }
	})
	x.tasks.start("launcher", func() func() {
		state, err := x.client.State(ctx)
		return func() { x.hear(state, err) }
	})
	x.decide(ctx)
}

// hear takes the launcher's word.
func (x *waiter) hear(state job.State, err error) {
	if err != nil {
		x.watch.report("launcher", err.Error())
		x.heard, x.jobOver = false, time.Time{}
		return
	}
	x.state, x.heard = state, true
	x.watch.report("launcher", x.launcher()+": "+state.Word+colon(state.Why))
	switch {
	case !state.Over:
		x.jobOver = time.Time{}
	case x.jobOver.IsZero():
		x.jobOver = time.Now()
	}
}

// decide sees whether the run is over, and has the launcher end the job where it does not see that by itself.
func (x *waiter) decide(ctx context.Context) {
	if x.nobody && x.heard && x.state.Futile && !x.ending && time.Since(x.asked) > endGrace {
		x.endJob(ctx, "ends the job: its agents end, before they have joined, with a code that starting them again "+
			"does not change")
	}
	if v := x.verdict(); v == nil || x.st.Live > 0 || startsAgain(x.Launcher.Client, *v) {
		x.runOver = time.Time{}
		return
	}
	if x.runOver.IsZero() {
		x.runOver = time.Now()
	}
	if !x.ending && x.heard && !x.state.Over && time.Since(x.runOver) > endGrace && time.Since(x.asked) > endGrace {
		x.endJob(ctx, "ends the job, so that it starts no agents again for a run that is over")
	}
}

// endJob has the launcher end the job.
func (x *waiter) endJob(ctx context.Context, why string) {
	x.ending, x.asked = true, time.Now()
	x.watch.print(x.launcher() + ": " + why)
	x.tasks.start("stop", func() func() {
		err := x.client.Stop(ctx)
		return func() {
			if err != nil {
				x.ending = false
				x.watch.print(err.Error())
			}
		}
	})
}

// verdict is that of our run, nil while there is none.
func (x *waiter) verdict() *registry.Verdict {
	if x.st == nil {
		return nil
	}
	return x.st.Verdict
}

// done tells that nothing more is to be waited for.
func (x *waiter) done() bool {
	return x.heard && x.state.Over && (x.st == nil || x.st.Live == 0 || x.verdict() == nil) ||
		!x.runOver.IsZero() && time.Since(x.runOver) > endPatience ||
		// The registry does not hear any more that its agents have ended.
		!x.jobOver.IsZero() && time.Since(x.jobOver) > endPatience
}

// end reports how the job ended, and removes what it was brought, unless the job goes on or the run was interrupted: it
// may be resumed.
func (x *waiter) end(ctx context.Context) error {
	x.watch.look(ctx) // the last agent may have written its end since
	x.st = x.watch.st
	v := x.verdict()
	var kept error
	// The run has ended, or never came about. A job that goes on may start an agent once more: its folder is removed by
	// a later submission (tidy).
	if x.state.Over && (v != nil || x.st == nil && !x.watch.silent) {
		kept = x.artifacts.remove(ctx)
	}
	code, text := x.outcome(v)
	if v != nil && v.Exit != nil && v.Exit.LastOutput != "" {
		x.watch.print("last output of " + v.First + ":\n  " + strings.ReplaceAll(v.Exit.LastOutput, "\n", "\n  "))
	}
	if v != nil && v.Advice != "" {
		x.watch.print("advice: " + v.Advice)
	}
	if code != 0 {
		follow, _ := x.client.Hints()
		x.watch.print("what the launcher knows of it: " + follow)
	}
	if v != nil && v.Outcome == registry.Stopped && x.interrupts > 0 {
		code = exit.CtrlC
	}
	if x.Answer == nil {
		fmt.Fprintf(x.Out, "%s: %s\n", x.app(), text)
	} else if v == nil {
		x.watch.print(text)
	}
	if err := errors.Join(x.answer(v, &code), kept); err != nil {
		return err
	}
	switch {
	case code == 0:
		return nil
	case x.st == nil:
		return errors.Join(exit.Silent{Code: code}, ErrNobody)
	}
	return exit.Silent{Code: code}
}

// outcome is the exit code and the text of how the job ended.
func (x *waiter) outcome(v *registry.Verdict) (code int, text string) {
	says := fmt.Sprintf("%s says %s%s", x.launcher(), x.state.Word, colon(x.state.Why))
	switch {
	case v != nil:
		return exit.Of(*v, ""), exit.VerdictText(*v)
	case x.st != nil: // as agents end that had SIGTERM from outside
		return exit.Interrupted, "interrupted: " + says + "; submitted again " + x.resumes()
	case x.watch.silent:
		return 1, fmt.Sprintf("registry %s does not answer: %s", x.registry(), says)
	}
	return 1, "no agent has joined: " + says + "; muster help exit-codes tells what agents end with"
}

// resumes tells how an interrupted run is resumed.
func (x *waiter) resumes() string {
	if x.numbered() {
		return "it begins as a new run, from what is kept in muster.checkpoint.sync"
	}
	return "with --run " + x.st.App.Run + " it goes on"
}

// Ends of a submission that are no end of its run.
var (
	ErrLeft   = errors.New("left while the job goes on")
	ErrNobody = errors.New("no agent has joined")
)

// interrupt answers Ctrl-C: this command is left, or the run is stopped; the second time the job is ended.
func (x *waiter) interrupt(ctx context.Context) error {
	x.interrupts++
	if seen := x.watch.seen.Load(); seen != nil { // what was reported of it is known to the user
		x.st = seen
	}
	follow, end := x.client.Hints()
	if !x.Kill {
		x.watch.print("the job goes on without this command\n" + x.handles())
		if err := x.answer(nil, nil); err != nil {
			return err
		}
		return errors.Join(exit.Silent{Code: exit.CtrlC}, ErrLeft)
	}
	switch {
	case x.interrupts > 2:
		x.watch.print("left; " + follow + " says what is still there")
		return errors.Join(exit.Silent{Code: exit.CtrlC}, ErrLeft)
	case x.interrupts == 1 && x.st != nil && x.verdict() == nil && x.st.Live > 0:
		x.stopRun(ctx, end)
		return nil
	}
	x.endJob(ctx, "ends the job")
	return nil
}

// stopRun has the gang stop in grace; where it cannot be asked, the launcher ends the job. end is the launcher's
// command for that.
func (x *waiter) stopRun(ctx context.Context, end string) {
	ask := registry.Ask{
		Kind: registry.AskStop, ID: strings.ToLower(rand.Text()), By: "stop",
		Args: map[string]string{"who": x.User},
	}
	x.tasks.start("ask", func() func() {
		err := x.Registry.Ask(ctx, x.app(), ask)
		return func() {
			if err != nil {
				x.watch.print(err.Error())
				x.endJob(ctx, "ends the job")
				return
			}
			x.watch.print("stops the run in grace; once more ends the job: " + end)
		}
	})
}
