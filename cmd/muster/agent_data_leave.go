package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// roomForOutputs makes the local folders, and makes sure that what will be in them can be left where it belongs.
func (r stageRoom) roomForOutputs(ctx context.Context, p plan.Plan, in registry.Instance, work files.Folder, folder *os.Root) error {
	if p.Outputs == nil {
		return nil
	}
	if err := r.dropOlder(p, in, work, folder); err != nil {
		return err
	}
	for _, one := range p.Outputs.To {
		if err := folder.MkdirAll(one.Name, 0o755); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if one.To == "" {
			continue
		}
		leave, err := r.leaveOf(ctx, p, one)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if err := leave.Prepare(ctx); err != nil {
			return withURL(err, one.To)
		}
		r.owes(one.Name, leave)
		r.tellRivals(ctx, one, leave)
	}
	return nil
}

// tellRivals warns of another app whose outputs would have the same name: only one of the two will have it.
func (r stageRoom) tellRivals(ctx context.Context, one plan.Output, leave stage.Leave) {
	rivals, err := leave.Rivals(ctx)
	if err != nil {
		r.log.Warn("look for other apps with the same output", "output", one.Name, "to", one.To, "err", err)
		return
	}
	kind := warnOutputs + " " + one.Name
	if len(rivals) == 0 {
		r.mended(kind, "output "+one.Name+": no other app has outputs under way at "+one.To+" any more")
		return
	}
	place, first := strings.TrimRight(one.To, "/"), rivals[0]
	app, _, _ := strings.Cut(first, "@")
	r.warn(kind, fmt.Sprintf("output %s: app %s has outputs under way at %s too, and only one of the two can have the name %s; name another place, or remove %s/_temporary/%s if that app is over",
		one.Name, app, one.To, leave.Folder, place, first))
	r.log.Warn("another app has the same output under way", "output", one.Name, "to", one.To, "runs", rivals)
}

// withURL has a place that is taken say in which filesystem it is.
func withURL(err error, url string) error {
	taken, ok := errors.AsType[*stage.TakenError](err)
	if !ok {
		return err
	}
	return &stage.TakenError{Out: url, Path: strings.TrimRight(url, "/") + strings.TrimPrefix(taken.Path, taken.Out)}
}

// withinStaging bounds what brings or leaves data by muster.stage.timeout.
func (a *agent) withinStaging(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := a.app.Settings.StageTimeout.Duration()
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, stageTimeout(limit))
}

// dropOlder empties the local folders that another run has left in this work folder: its results are not this one's.
func (r stageRoom) dropOlder(p plan.Plan, in registry.Instance, work files.Folder, folder *os.Root) error {
	owner, mark := r.outputsOwner(), outputsMark(in)
	if text, err := work.ReadFile(mark); err == nil && string(text) == owner {
		return nil
	}
	for _, one := range p.Outputs.To {
		if err := folder.RemoveAll(one.Name); err != nil {
			return fmt.Errorf("output %s: of another run: %w", one.Name, err)
		}
	}
	return work.WriteHere(mark, owner, false)
}

// outputsMark is the file in the work folder that says whose the local folders of an instance are.
func outputsMark(in registry.Instance) string { return ".outputs-" + in.String() }

// leaveOf is one output of this instance in this run.
func (a *agent) leaveOf(ctx context.Context, p plan.Plan, one plan.Output) (stage.Leave, error) {
	store, path, err := a.openStore(ctx, p, one.To, true)
	return stage.Leave{
		Store: store, Out: path, Folder: cmp.Or(p.Outputs.Folder, one.Name), Run: a.outputsOwner(), Turn: a.inc,
		Saves: p.Outputs.Interim,
	}, err
}

// outputTransfer leaves outputs as the definition says.
func (a *agent) outputTransfer(out *plan.Outputs) stage.Transfer {
	t := a.transfer()
	t.Parallel = out.Parallel
	return t
}

// outputsOwner is whose outputs these are: this life of the app in this registry. One that was forgotten is another's,
// whatever it was called.
func (a *agent) outputsOwner() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	founded := a.founded
	if of := a.member.Founded(); !of.IsZero() {
		founded = of
	}
	return a.id.appID + "@" + a.id.run + "@" + strconv.FormatInt(founded.UnixMilli(), 36)
}

// ended tells the machine that a process has ended, once what it leaves is where it belongs.
func (a *agent) ended(e machine.Event, first func(context.Context)) {
	if first != nil {
		ctx, cancel := a.mayCallOff()
		go func() {
			first(ctx)
			cancel(nil)
			a.ended(e, nil)
		}()
		return
	}
	p := a.currentPlan()
	if !leavesOutputs(p, e.Exit, a.loop.State()) {
		a.loop.Tell(e)
		return
	}
	ctx, cancel := a.mayCallOff()
	go func() {
		defer cancel(nil)
		ctx, stop := a.withinStaging(ctx)
		defer stop()
		defer a.leaves()()
		a.awaitSaves()
		if err := a.leaveOutputs(ctx, p); err != nil {
			a.log.Error("outputs are not left", "err", err)
			if s := a.loop.State(); s.Reason == machine.ForVerdict && succeeded(s) {
				a.oweOutputs(err)
			}
			e.Exit = notLeft(e.Exit, err)
		}
		a.loop.Tell(e)
	}()
}

// mayCallOff is for what a kill gives up.
func (a *agent) mayCallOff() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.callOff = cancel
	return ctx, cancel
}

// leavesOutputs tells whether the end of a process is one after which its outputs are left: its own success; the job's,
// where that is its usual end (a parameter server's, an evaluator's); and a failure, where that is asked for. A worker that
// a partial success ends is in the middle of something.
func leavesOutputs(p plan.Plan, x *machine.Exit, s machine.State) bool {
	o := p.Outputs
	if o == nil || !slices.ContainsFunc(o.To, func(one plan.Output) bool { return one.To != "" }) {
		return false
	}
	if s.Phase == machine.Stopping {
		return s.Reason == machine.ForVerdict && succeeded(s) && (endsWithJob(p.Who.Role) || x.OK())
	}
	return x.OK() || o.Failed
}

// endsWithJob tells the roles whose processes go on until the job has succeeded.
func endsWithJob(role string) bool {
	return role != string(appdef.RoleChief) && role != string(appdef.RoleWorker)
}

func succeeded(s machine.State) bool {
	v := s.Directive.Verdict
	return v != nil && v.Outcome == registry.Succeeded
}

// callOffOutputs gives the leaving of outputs up when the process would be killed; a job that has succeeded keeps its.
func (a *agent) callOffOutputs(s machine.State) {
	if s.Reason == machine.ForVerdict && succeeded(s) && s.Terms < 2 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.callOff != nil {
		a.callOff(errors.New("called off: " + cmp.Or(s.Cause, string(s.Reason), "it was to end")))
	}
}

// leaveOutputs copies the process's folders to where they belong.
func (a *agent) leaveOutputs(ctx context.Context, p plan.Plan) (err error) {
	work, err := files.As(nil).Below(a.workDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		begun := time.Now()
		left, err := a.leaveOutput(ctx, p, one, work)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if len(left.Skipped) > 0 {
			a.log.Warn("neither files nor folders are left out", "output", one.Name, "paths", strings.Join(left.Skipped, ", "))
		}
		a.log.Info("output is left", "output", one.Name, "to", one.To, "files", left.Files, "bytes", left.Bytes, "took", time.Since(begun).Round(time.Millisecond))
	}
	return nil
}

func (a *agent) leaveOutput(ctx context.Context, p plan.Plan, one plan.Output, work files.Folder) (_ stage.Left, err error) {
	leave, err := a.leaveOf(ctx, p, one)
	if err != nil {
		return stage.Left{}, err
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return a.leaveSaid(ctx, leave)
	}
	folder, err := work.Make(filepath.Join(p.Process.Folder, one.Name))
	if err != nil {
		return stage.Left{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return leave.Upload(ctx, folder, a.outputTransfer(p.Outputs))
}

// notLeft is the end of a process whose success is not worth anything without what it made. A failure stays what it was.
func notLeft(x *machine.Exit, err error) *machine.Exit {
	if !x.OK() {
		return x
	}
	out := *x
	out.Code, out.Unseen, out.Final = nil, true, true
	out.Class, out.Message = registry.ClassData, short("it ended with 0, but "+err.Error())
	if fault.Is(err, registry.ClassTimeout) {
		out.Class = registry.ClassTimeout
	}
	return &out
}
