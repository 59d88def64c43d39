package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
)

// following is one wait for the end of a job. Whatever may take its time is done beside the loop, which hears of it and of Ctrl-C.
type following struct {
	*sent
	watch  onlooker // what is asked beside the loop owns it
	beside besides
	st     *consul.Status // of our run, as the registry told it last; nil: nobody of it is known
	nobody bool           // the registry has just said so
	state  job.State      // the launcher's word, as it was heard last
	heard  bool
	gone   time.Time // since when the launcher says that the job is over; zero: it does not
	over   time.Time // since when the run is over in the registry; zero: it is not
	wishes int       // how often somebody asked to end it
	ended  bool      // the launcher ends the job, as it was asked to
	tried  time.Time // when it was asked last
}

// besides are what goes on beside a loop: of each kind one at once, and what follows from it is done by the loop.
type besides struct {
	busy map[string]bool
	then chan func()
	wg   sync.WaitGroup
}

// mostBesides is the number of kinds: what one has found waits for the loop, and nothing waits for that.
const mostBesides = 5

func (b *besides) start(kind string, work func() (then func())) {
	if b.busy == nil {
		b.busy, b.then = map[string]bool{}, make(chan func(), mostBesides)
	}
	if b.busy[kind] {
		return
	}
	b.busy[kind] = true
	b.wg.Go(func() {
		then := work()
		b.then <- func() {
			b.busy[kind] = false
			then()
		}
	})
}

const (
	// settling is how long a launcher may take to see that all agents have ended, before it is told.
	settling = 10 * time.Second
	// settled is how long it may take after that, in which its own word for the end is waited for.
	settled = time.Minute
)

// interruptedCode is what an interrupted run ends with: its agents had SIGTERM, or something like it, from outside.
const interruptedCode = 128 + int(syscall.SIGTERM)

// ctrlCCode is what a person's Ctrl-C ends with.
const ctrlCCode = 128 + int(syscall.SIGINT)

// follow waits until the job is over, and gives its verdict as the exit code. From its beginning on Ctrl-C is a question to it:
// begun is called when it is heard here, and tells that there was none before.
func (r *sent) follow(ctx context.Context, begun func() bool) error {
	heard := make(chan os.Signal, 3)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(heard)
	if !begun() {
		signal.Stop(heard)
		return r.undo(ctx)
	}
	x := &following{sent: r, watch: onlooker{
		lookup: r.lookup(), app: r.app, address: r.registry, ours: r.ours, workers: hboxWorkers(&r.def), hbox: r.flags.hbox,
		say: func(line string) { fmt.Fprintln(r.streams.Err, line) },
	}}
	if r.flags.hbox {
		_, end := r.job.Hints()
		x.watch.say("To kill this job: muster stop " + r.app + " --registry " + r.registry.String() + ", or " + end)
	}
	if err := x.wait(ctx, heard); err != nil {
		return err
	}
	return x.end(ctx)
}

// wait returns when nothing more is to be waited for, or with the error that this command is left by. From then on Ctrl-C
// ends this command: what goes on beside may hang at a folder that does not answer.
func (x *following) wait(ctx context.Context, heard chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer x.beside.wg.Wait()
	defer signal.Stop(heard)
	defer cancel()
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	x.beside.start("tidy", func() func() {
		x.tidy(ctx, x.watch.say)
		return func() {}
	})
	x.look(ctx)
	for !x.done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-heard:
			if err := x.interrupt(ctx); err != nil {
				return err
			}
		case then := <-x.beside.then:
			then()
		case <-tick.C:
			x.look(ctx)
		}
	}
	return nil
}

// look asks the registry and the launcher once, each where the last answer has come.
func (x *following) look(ctx context.Context) {
	x.beside.start("registry", func() func() {
		x.watch.look(ctx)
		st, nobody := x.watch.st, x.watch.st == nil && !x.watch.silent
		return func() { x.st, x.nobody = st, nobody }
	})
	x.beside.start("launcher", func() func() {
		state, err := x.job.State(ctx)
		return func() { x.hear(state, err) }
	})
	x.settle(ctx)
}

// hear takes the launcher's word.
func (x *following) hear(state job.State, err error) {
	if err != nil {
		x.watch.told("launcher", err.Error())
		x.heard, x.gone = false, time.Time{}
		return
	}
	x.state, x.heard = state, true
	x.watch.told("launcher", x.launcher+": "+state.Word+colon(state.Why))
	switch {
	case !state.Over:
		x.gone = time.Time{}
	case x.gone.IsZero():
		x.gone = time.Now()
	}
}

// settle sees whether the run is over, and has the launcher end the job where it does not see that by itself.
func (x *following) settle(ctx context.Context) {
	if x.nobody && x.heard && x.state.Futile && !x.ended && time.Since(x.tried) > settling {
		x.stop(ctx, "ends the job: its agents end, before they have joined, with a code that starting them again does not change")
	}
	if v := x.verdict(); v == nil || x.st.Live > 0 || startsAnew(x.launcher, *v) {
		x.over = time.Time{}
		return
	}
	if x.over.IsZero() {
		x.over = time.Now()
	}
	if !x.ended && x.heard && !x.state.Over && time.Since(x.over) > settling && time.Since(x.tried) > settling {
		x.stop(ctx, "ends the job, so that it starts no agents again for a run that is over")
	}
}

// stop has the launcher end the job.
func (x *following) stop(ctx context.Context, say string) {
	x.ended, x.tried = true, time.Now()
	x.watch.say(x.launcher + ": " + say)
	x.beside.start("stop", func() func() {
		err := x.job.Stop(ctx)
		return func() {
			if err != nil {
				x.ended = false
				x.watch.say(err.Error())
			}
		}
	})
}

// verdict is that of our run, nil while there is none.
func (x *following) verdict() *registry.Verdict {
	if x.st == nil {
		return nil
	}
	return x.st.Verdict
}

// startsAnew tells of a verdict that the launcher answers with a new run.
func startsAnew(launcher string, v registry.Verdict) bool {
	return clientOf(launcher).NewRuns && exit.Of(v, "") == exit.Held
}

// done tells that nothing more is to be waited for.
func (x *following) done() bool {
	return x.heard && x.state.Over && (x.st == nil || x.st.Live == 0 || x.verdict() == nil) ||
		!x.over.IsZero() && time.Since(x.over) > settled ||
		!x.gone.IsZero() && time.Since(x.gone) > settled // the registry does not hear any more that its agents are gone
}

// end says how it ended, and takes away what was brought, unless the run was interrupted: it may go on.
func (x *following) end(ctx context.Context) error {
	x.watch.look(ctx) // who ended last may have written it since
	x.st = x.watch.st
	v := x.verdict()
	var released error
	if v != nil || x.st == nil && !x.watch.silent { // it has ended, or never came about
		released = x.cargo.release(ctx, x.app, x.run)
	}
	code := 1
	text := ""
	switch {
	case v != nil:
		code, text = exit.Of(*v, ""), verdictText(*v)
		if v.Advice != "" {
			x.watch.say("advice: " + v.Advice)
		}
	case x.st != nil:
		code, text = interruptedCode, fmt.Sprintf("interrupted: %s says %s%s; submitted again %s", x.launcher, x.state.Word, colon(x.state.Why), x.goesOn())
	case x.watch.silent:
		text = fmt.Sprintf("registry %s does not answer: %s says %s%s", x.registry, x.launcher, x.state.Word, colon(x.state.Why))
	default:
		text = fmt.Sprintf("no agent has joined: %s says %s%s; muster help exit-codes tells what agents end with", x.launcher, x.state.Word, colon(x.state.Why))
	}
	if code != 0 {
		follow, _ := x.job.Hints()
		x.watch.say("what the launcher knows of it: " + follow)
	}
	if v != nil && v.Outcome == registry.Stopped && x.wishes > 0 {
		code = ctrlCCode
	}
	if !x.flags.json {
		fmt.Fprintf(x.streams.Out, "%s: %s\n", x.app, text)
	} else if v == nil {
		x.watch.say(text)
	}
	if err := errors.Join(x.answer(v, &code), released); err != nil {
		return err
	}
	switch {
	case code == 0:
		return nil
	case x.st == nil:
		return errors.Join(exit.Silent{Code: code}, errNobody)
	}
	return exit.Silent{Code: code}
}

// goesOn says how an interrupted run is gone on with.
func (x *following) goesOn() string {
	if x.numbered() {
		return "it begins as a new run, from what is kept in muster.checkpoint.sync"
	}
	return "with --run " + x.st.App.Run + " it goes on"
}

// Ends that are none of the run: whoever waited for it left, or no agent of it has come about.
var (
	errLeft   = errors.New("left while the job goes on")
	errNobody = errors.New("no agent has joined")
)

// interrupt is Ctrl-C: whoever waits goes, or the run is stopped; asked again, the job is ended.
func (x *following) interrupt(ctx context.Context) error {
	x.wishes++
	if seen := x.watch.seen.Load(); seen != nil { // what was said of it is known to whoever asks
		x.st = seen
	}
	follow, end := x.job.Hints()
	if !x.flags.kill {
		x.watch.say("the job goes on without this command\n" + x.handles())
		if x.flags.json {
			if err := x.answer(nil, nil); err != nil {
				return err
			}
		}
		return errors.Join(exit.Silent{Code: ctrlCCode}, errLeft)
	}
	switch {
	case x.wishes > 2:
		x.watch.say("left; " + follow + " says what is still there")
		return errors.Join(exit.Silent{Code: ctrlCCode}, errLeft)
	case x.wishes == 1 && x.st != nil && x.verdict() == nil && x.st.Live > 0:
		ask := registry.Ask{Kind: registry.AskStop, ID: strings.ToLower(rand.Text()), By: "stop", Args: map[string]string{"who": apps.Asker()}}
		x.beside.start("ask", func() func() {
			err := apps.Ask(ctx, x.registry, x.app, ask)
			return func() {
				if err != nil {
					x.watch.say(err.Error())
					x.stop(ctx, "ends the job")
					return
				}
				x.watch.say("stops the run in grace; once more ends the job: " + end)
			}
		})
		return nil
	}
	x.stop(ctx, "ends the job")
	return nil
}
