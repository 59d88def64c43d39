package main

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
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/render"
	"github.com/muster-agent/muster/shim/submit"
)

// following is one wait for the end of a job.
type following struct {
	*sent
	watch  onlooker
	state  submit.State // the launcher's word, as it was heard last
	heard  bool
	over   time.Time // since when the run is over in the registry; zero: it is not
	wishes int       // how often somebody asked to end it
	ended  bool      // the launcher was asked to end the job
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

// follow waits until the job is over, and gives its verdict as the exit code.
func (r *sent) follow(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // a Ctrl-C is a question from here on
	x := &following{sent: r, watch: onlooker{
		lookup: r.lookup(), app: r.app, address: r.registry, ours: r.ours, workers: hboxWorkers(&r.def), hbox: r.flags.hbox,
		say: func(line string) { fmt.Fprintln(r.streams.err, line) },
	}}
	if r.flags.hbox {
		_, end := r.job.Hints()
		x.watch.say("To kill this job: muster stop " + r.app + " --registry " + r.registry + ", or " + end)
	}
	heard := make(chan os.Signal, 3)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(heard)
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for {
		x.look(ctx)
		if x.done() {
			return x.end(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-heard:
			if err := x.interrupt(ctx); err != nil {
				return err
			}
		case <-tick.C:
		}
	}
}

// look asks the registry and the launcher once.
func (x *following) look(ctx context.Context) {
	x.watch.look(ctx)
	state, err := x.job.State(ctx)
	if err != nil {
		x.watch.told("launcher", err.Error())
		x.heard = false
	} else {
		x.state, x.heard = state, true
		x.watch.told("launcher", x.launcher+": "+state.Word+colon(state.Why))
	}
	if v := x.watch.verdict(); v == nil || x.watch.st.Live > 0 || x.again(*v) {
		x.over = time.Time{}
		return
	}
	if x.over.IsZero() {
		x.over = time.Now()
	}
	if !x.ended && x.heard && !x.state.Over && time.Since(x.over) > settling {
		x.ended = true
		x.watch.say(x.launcher + ": ends the job, so that it starts no agents again for a run that is over")
		if err := x.job.Stop(ctx); err != nil {
			x.watch.say(err.Error())
		}
	}
}

// again tells of a verdict that the launcher answers with a new run.
func (x *following) again(v registry.Verdict) bool {
	return (x.launcher == render.Slurm || x.launcher == render.Kubernetes) && shim.Code(v, "") == shim.CodeHeld
}

// done tells that nothing more is to be waited for.
func (x *following) done() bool {
	return x.heard && x.state.Over && (x.watch.st == nil || x.watch.st.Live == 0 || x.watch.verdict() == nil) ||
		!x.over.IsZero() && time.Since(x.over) > settled
}

// end says how it ended, and takes away what was brought, unless the run was interrupted: it may go on.
func (x *following) end(ctx context.Context) error {
	x.watch.look(ctx) // who ended last may have written it since
	v := x.watch.verdict()
	var released error
	if v != nil || x.watch.st == nil {
		released = x.cargo.release(ctx, x.app, x.run)
	}
	code := 1
	text := ""
	switch {
	case v != nil:
		code, text = shim.Code(*v, ""), verdictText(*v)
		if v.Advice != "" {
			x.watch.say("advice: " + v.Advice)
		}
	case x.watch.st != nil:
		code, text = interruptedCode, fmt.Sprintf("interrupted: %s says %s%s; submitted again with --run %s it goes on", x.launcher, x.state.Word, colon(x.state.Why), x.run)
	default:
		text = fmt.Sprintf("no agent has joined: %s says %s%s", x.launcher, x.state.Word, colon(x.state.Why))
	}
	if code != 0 {
		follow, _ := x.job.Hints()
		x.watch.say("what the launcher knows of it: " + follow)
	}
	if !x.flags.json {
		fmt.Fprintf(x.streams.out, "%s: %s\n", x.app, text)
	} else if v == nil {
		x.watch.say(text)
	}
	if err := errors.Join(x.answer(v, &code), released); err != nil {
		return err
	}
	if code == 0 {
		return nil
	}
	return silentError{code}
}

// interrupt is Ctrl-C: whoever waits goes, or the run is stopped; asked again, the job is ended.
func (x *following) interrupt(ctx context.Context) error {
	x.wishes++
	follow, end := x.job.Hints()
	if !x.flags.kill {
		where := x.app + " --registry " + x.registry
		x.watch.say(strings.Join([]string{
			"the job goes on without this command",
			"  follow it: muster status " + where + " --wait, or " + follow,
			"  stop it:   muster stop " + where + ", or without its verdict " + end,
		}, "\n"))
		if x.flags.json {
			if err := x.answer(nil, nil); err != nil {
				return err
			}
		}
		return silentError{ctrlCCode}
	}
	switch {
	case x.wishes > 2:
		x.watch.say("left; " + follow + " says what is still there")
		return silentError{ctrlCCode}
	case x.wishes == 1 && x.watch.st != nil && x.watch.verdict() == nil && x.watch.st.Live > 0:
		ask := registry.Ask{Kind: registry.AskStop, ID: strings.ToLower(rand.Text()), By: "stop", Args: map[string]string{"who": whoAsks()}}
		if err := askGang(ctx, x.registry, x.app, ask); err != nil {
			x.watch.say(err.Error())
			break
		}
		x.watch.say("stops the run in grace; once more ends the job: " + end)
		return nil
	}
	x.ended = true
	x.watch.say(x.launcher + ": ends the job")
	if err := x.job.Stop(ctx); err != nil {
		x.watch.say(err.Error())
	}
	return nil
}
