package shim

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/notify/message"
	"github.com/muster-agent/muster/shim/status"
)

// Run is the whole life of an agent: it joins the gang, runs the process, and ends with the verdict. It returns the
// exit code for the launcher, and an error if the log does not explain the code yet.
func Run(ctx context.Context, o Options) (code int, err error) {
	early, callOff := context.WithCancelCause(ctx)
	defer callOff(nil)
	stops := listen(ctx, o, func(r stopRequest) { callOff(r) })
	defer stops.close()
	o, err = o.orDefaults()
	ref, begun := o.App, time.Now()
	last, manager := "", notify.New(o.Output.logger(o.Output.To), func() notify.Message {
		return message.Loading(ref, begun, time.Now())
	})
	defer func() { manager.Close(cmp.Or(last, message.OfError(err))) }()
	if err != nil {
		return o.ExitCodes.Apply(exit.CodeOf(err), ""), err
	}
	if err := o.admit(); err != nil {
		return o.ExitCodes.Apply(exit.CodeOf(err), ""), err
	}
	open := o.Open
	open.Policy, open.Hadoop = &o.Policy, o.Hadoop
	app, err := open.Load(early, o.App, o.Output.To)
	if err != nil {
		return endedEarly(early, o.ExitCodes, exit.CodeOf(err), err)
	}
	defer app.Close()
	a, err := prepareAgent(early, o, app, manager)
	if err != nil {
		return endedEarly(early, o.ExitCodes, exit.CodeOf(err), err)
	}
	defer a.close()
	stops.handle(a.requestStop)
	if early.Err() != nil {
		return endedEarly(early, o.ExitCodes, 0, nil)
	}
	final := a.run(context.WithoutCancel(ctx)) // its end is a stop request
	a.data.Finish()                            // the results tell what it could not do
	a.data.KeepSides()
	last = message.Last(final)
	return a.end(ctx, o, final)
}

// requestStop passes a request to the machine. After the machine's end a request cuts the agent's own end short:
// outputs that a store does not take are waited for no longer.
func (a *agent) requestStop(r stopRequest) {
	if r.by != "" {
		a.log.Warn("asked to end", "by", r.by)
	}
	a.loop.Tell(machine.Event{Kind: machine.Term, Signal: int(r.signal)})
	if a.loop.State().Phase.Final() {
		a.log.Warn("asked to end at once", "by", cmp.Or(r.by, registry.SignalName(int(r.signal))))
		a.mu.Lock()
		a.hurried = &r
		callOff := a.callOff
		a.mu.Unlock()
		if callOff != nil {
			callOff()
		}
		a.data.CutShort()
	}
}

// hurriedBy is the request that came after the machine's end; nil: none did.
func (a *agent) hurriedBy() *stopRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hurried
}

// end writes the results and logs the end of the agent. It returns the exit code.
func (a *agent) end(ctx context.Context, o Options, final machine.State) (code int, err error) {
	code, class := final.ExitCode(), classOf(final)
	undone := a.data.Undone()
	if undone != nil && code == 0 {
		code = exit.Registry
		if r := a.hurriedBy(); r != nil {
			code, class = r.code(), registry.ClassLauncher
		}
	}
	mapped := o.ExitCodes.Apply(code, class)
	a.notify.Ends(mapped)
	a.keep(ctx, final, a.epilogue(final, code, mapped))
	if o.Output.PAIReport {
		a.reportPAI(o.Output.To, final)
	}
	switch {
	case undone != nil && mapped != 0:
		return mapped, undone
	case code != 0 && final.Cause != "" && final.Directive.Verdict == nil:
		return mapped, errors.New(final.Cause)
	}
	return mapped, nil
}

// classOf is the class of an agent's end: the verdict's, else its own.
func classOf(final machine.State) registry.Class {
	if v := final.Directive.Verdict; v != nil {
		return v.Class
	}
	return final.Class
}

// keep leaves this agent's part of the run in the history store. A request to end at once ends it.
func (a *agent) keep(ctx context.Context, final machine.State, x status.ExitFile) {
	if a.policy.History.Store == "" || x.Instance == "" || a.hurriedBy() != nil {
		return
	}
	k := historyWriter{
		policy: a.policy, hadoop: a.hadoop, log: a.log, journal: a.journal, client: a.client, app: a.app.App,
		id: a.id.appID, run: a.id.run,
		context: history.Context{Name: a.app.Name, Launcher: a.alloc.Launcher, Registry: a.registryAddr.String()},
	}
	patience := k.patience(time.Duration(a.alloc.KillWindow * float64(time.Second)))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	a.mu.Lock()
	a.callOff, k.conducted = cancel, a.conducted
	a.mu.Unlock()
	a.journal.Flush()
	last := a.snapshot()
	if last.Use = a.samples.Use(); last.Use != nil {
		last.Use.Limits = a.limits()
	}
	k.keep(ctx, final.Instance, history.Instance{
		State: history.State{State: last}, Exit: x, Plan: a.currentPlan().JSON(),
		Samples: a.sampled(0),
		Since:   a.member.Founded(), LogDir: filepath.Join(a.logDir, x.Instance), Hide: a.hidden.Hide,
	})
}
