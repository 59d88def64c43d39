package shim

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
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// warnOutputs and a name: another app has the same place.
const warnOutputs = "outputs"

// roomForOutputs makes the local folders, and makes sure that what will be in them can be left where it belongs.
func (d *dataManager) roomForOutputs(ctx context.Context, p plan.Plan, in registry.Instance, work files.Folder, folder *os.Root) error {
	if p.Outputs == nil {
		return nil
	}
	if err := d.dropOlder(p, in, work, folder); err != nil {
		return err
	}
	for _, one := range p.Outputs.To {
		if err := folder.MkdirAll(one.Name, 0o755); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if one.To == "" {
			continue
		}
		leave, err := d.leaveOf(ctx, p, one)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if err := leave.Prepare(ctx); err != nil {
			return withURL(err, one.To)
		}
		d.owes(one.Name, leave)
		d.tellRivals(ctx, one, leave)
	}
	return nil
}

// tellRivals warns of another app whose outputs would have the same name: only one of the two will have it.
func (d *dataManager) tellRivals(ctx context.Context, one plan.Output, leave data.Leave) {
	rivals, err := leave.Rivals(ctx)
	if err != nil {
		d.cfg.Log.Warn("look for other apps with the same output", "output", one.Name, "to", one.To, "err", err)
		return
	}
	kind := warnOutputs + " " + one.Name
	if len(rivals) == 0 {
		d.cfg.Notices.Mended(kind, "output "+one.Name+": no other app has outputs under way at "+one.To+" any more")
		return
	}
	place, first := strings.TrimRight(one.To, "/"), rivals[0]
	app, _, _ := strings.Cut(first, "@")
	d.cfg.Notices.Warn(kind, fmt.Sprintf("output %s: app %s has outputs under way at %s too, and only one of the two can have the name %s; name another place, or remove %s/_temporary/%s if that app is over",
		one.Name, app, one.To, leave.Folder, place, first))
	d.cfg.Log.Warn("another app has the same output under way", "output", one.Name, "to", one.To, "runs", rivals)
}

// withURL has a place that is taken say in which filesystem it is.
func withURL(err error, url string) error {
	taken, ok := errors.AsType[*data.TakenError](err)
	if !ok {
		return err
	}
	return &data.TakenError{Out: url, Path: strings.TrimRight(url, "/") + strings.TrimPrefix(taken.Path, taken.Out)}
}

// withinStaging bounds what brings or leaves data by muster.stage.timeout.
func (d *dataManager) withinStaging(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := d.cfg.App.Settings.StageTimeout.Duration()
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fault.StageTimeout(limit))
}

// dropOlder empties the local folders that another run has left in this work folder: its results are not this one's.
func (d *dataManager) dropOlder(p plan.Plan, in registry.Instance, work files.Folder, folder *os.Root) error {
	owner, mark := d.outputsOwner(), outputsMark(in)
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
func (d *dataManager) leaveOf(ctx context.Context, p plan.Plan, one plan.Output) (data.Leave, error) {
	store, path, err := d.cfg.Stores.Open(ctx, p, one.To, true)
	return data.Leave{
		Store: store, Out: path, Folder: cmp.Or(p.Outputs.Folder, one.Name), Run: d.outputsOwner(), Turn: d.cfg.Inc,
		Saves: p.Outputs.Interim,
	}, err
}

// outputTransfer leaves outputs as the definition says.
func (d *dataManager) outputTransfer(out *plan.Outputs) transfer.Transfer {
	t := d.transfer()
	t.Parallel = out.Parallel
	return t
}

// outputsOwner is whose outputs these are: this life of the app in this registry. One that was forgotten is another's,
// whatever it was called.
func (d *dataManager) outputsOwner() string {
	d.mu.Lock()
	founded := d.founded
	d.mu.Unlock()
	if seat := d.cfg.Seat(); seat != nil {
		founded = seat.Founded()
	}
	return d.cfg.AppID + "@" + d.cfg.Run + "@" + strconv.FormatInt(founded.UnixMilli(), 36)
}

// ended tells the machine that a process has ended, once what it leaves is where it belongs; first, unless nil, comes before.
func (d *dataManager) ended(e machine.Event, first func(context.Context)) {
	if first != nil {
		ctx, cancel := d.mayCallOff()
		d.tasks.Go(func() {
			first(ctx)
			cancel(nil)
			d.ended(e, nil)
		})
		return
	}
	p := d.cfg.Process.Plan()
	if !toLeave(p, e.Exit, d.cfg.Loop.State()) {
		d.cfg.Loop.Tell(e)
		return
	}
	ctx, cancel := d.mayCallOff()
	d.tasks.Go(func() {
		defer cancel(nil)
		ctx, stop := d.withinStaging(ctx)
		defer stop()
		defer d.leaves()()
		d.awaitSaves()
		if err := d.leaveOutputs(ctx, p); err != nil {
			d.cfg.Log.Error("outputs are not left", "err", err)
			if s := d.cfg.Loop.State(); s.Reason == machine.ForVerdict && succeeded(s) {
				d.oweOutputs(err)
			}
			e.Exit = notLeft(e.Exit, err)
		}
		d.cfg.Loop.Tell(e)
	})
}

// mayCallOff is for what a kill gives up.
func (d *dataManager) mayCallOff() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(d.ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.callOff = cancel
	return ctx, cancel
}

// toLeave tells whether the end of a process is one after which its outputs are left: its own success; the job's,
// where that is its usual end (a parameter server's, an evaluator's); and a failure, where that is asked for. A worker that
// a partial success ends is in the middle of something.
func toLeave(p plan.Plan, x *machine.Exit, s machine.State) bool {
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

// callOffOutputs gives up what follows the end of the process when the process would be killed; a job that has succeeded keeps its.
func (d *dataManager) callOffOutputs(s machine.State) {
	if s.Reason == machine.ForVerdict && succeeded(s) && s.Terms < 2 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.callOff != nil {
		d.callOff(errors.New("called off: " + cmp.Or(s.Cause, string(s.Reason), "it was to end")))
	}
}

// leaveOutputs copies the process's folders to where they belong.
func (d *dataManager) leaveOutputs(ctx context.Context, p plan.Plan) (err error) {
	work, err := files.As(nil).Below(d.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		begun := time.Now()
		left, err := d.leaveOutput(ctx, p, one, work)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if len(left.Skipped) > 0 {
			d.cfg.Log.Warn("neither files nor folders are left out", "output", one.Name, "paths", strings.Join(left.Skipped, ", "))
		}
		d.cfg.Log.Info("output is left", "output", one.Name, "to", one.To, "files", left.Files, "bytes", left.Bytes, "took", time.Since(begun).Round(time.Millisecond))
	}
	return nil
}

func (d *dataManager) leaveOutput(ctx context.Context, p plan.Plan, one plan.Output, work files.Folder) (_ data.Left, err error) {
	leave, err := d.leaveOf(ctx, p, one)
	if err != nil {
		return data.Left{}, err
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return d.leaveSaid(ctx, leave)
	}
	folder, err := work.Make(filepath.Join(p.Process.Folder, one.Name))
	if err != nil {
		return data.Left{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return leave.Upload(ctx, folder, d.outputTransfer(p.Outputs))
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
