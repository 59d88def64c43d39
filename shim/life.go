package shim

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/outlook"
	"github.com/muster-agent/muster/shim/signals"
)

// Run is the whole life of an agent: it joins the gang, runs the process, and ends with the verdict. It returns the
// exit code for the launcher, and an error if the log does not explain the code yet.
func Run(ctx context.Context, o Options) (code int, err error) {
	last, manager := "", notify.New(o.Output.logger(o.Output.To), outlook.Loading(o.App, time.Now()))
	defer func() { manager.Close(cmp.Or(last, outlook.OfError(err))) }()
	open := o.Open
	open.Policy, open.Hadoop = &o.Policy, o.Hadoop
	app, err := open.Load(ctx, o.App, o.Output.To)
	if err != nil {
		return exit.CodeOf(err), err
	}
	defer app.Close()
	a, err := prepareAgent(ctx, o, app, manager)
	if err != nil {
		return exit.CodeOf(err), err
	}
	defer a.close()
	defer a.hear(o)()
	final := a.run(ctx)
	last = outlook.Last(final)
	return a.end(o, final)
}

// end writes the results and logs the end of the agent. It returns the exit code.
func (a *agent) end(o Options, final machine.State) (code int, err error) {
	code = final.ExitCode()
	undone := a.data.Undone()
	if undone != nil && code == 0 {
		code = exit.Registry
	}
	mapped := o.ExitCodes.Apply(code, classOf(final))
	a.notify.Ends(mapped)
	a.epilogue(final, code, mapped)
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

// hear turns signals and the end of the lifeline into events of the machine. stop ends that.
func (a *agent) hear(o Options) (stop func()) {
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		var repeat signals.Repeat
		for {
			select {
			case sig := <-o.Signals:
				if repeat.Again(sig, time.Now()) {
					continue
				}
				number, _ := sig.(syscall.Signal)
				a.loop.Tell(machine.Event{Kind: machine.Term, Signal: int(number)})
			case <-done:
				return
			}
		}
	})
	if o.Lifeline != nil {
		all.Go(func() {
			_, err := o.Lifeline.Read(make([]byte, 1)) // only its end matters
			if errors.Is(err, os.ErrClosed) {
				return
			}
			a.log.Warn("the program that started this agent has ended")
			a.loop.Tell(machine.Event{Kind: machine.Term, Signal: int(syscall.SIGTERM)})
		})
	}
	return func() {
		close(done)
		if o.Lifeline != nil {
			_ = o.Lifeline.Close() // ends the read
		}
		all.Wait()
	}
}
