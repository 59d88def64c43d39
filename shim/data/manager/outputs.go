package manager

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
	"github.com/muster-agent/muster/shim/wording"
)

// warnOutputs and a name: another app has the same place.
const warnOutputs = "outputs"

// roomForOutputs makes the local folders, and makes sure that what will be in them can be left where it belongs.
func (m *Manager) roomForOutputs(
	ctx context.Context, p plan.Plan, in registry.Instance, work files.Folder, folder *os.Root,
) error {
	if p.Outputs == nil {
		return nil
	}
	if err := m.dropOlder(p, in, work, folder); err != nil {
		return err
	}
	for _, one := range p.Outputs.To {
		if err := folder.MkdirAll(one.Name, 0o755); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if one.To == "" {
			continue
		}
		leave, err := m.leaveOf(ctx, p, one)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if err := leave.Prepare(ctx); err != nil {
			return withURL(err, one.To)
		}
		m.owes(one.Name, leave)
		m.tellRivals(ctx, one, leave)
	}
	return nil
}

// tellRivals warns of another app whose outputs would have the same name: only one of the two will have it.
func (m *Manager) tellRivals(ctx context.Context, one plan.Output, leave data.Leave) {
	rivals, err := leave.Rivals(ctx)
	if err != nil {
		m.cfg.Log.Warn("look for other apps with the same output", "output", one.Name, "to", one.To, "err", err)
		return
	}
	kind := warnOutputs + " " + one.Name
	if len(rivals) == 0 {
		m.cfg.Notices.Mended(kind, "output "+one.Name+": no other app has outputs under way at "+one.To+" any more")
		return
	}
	place, first := strings.TrimRight(one.To, "/"), rivals[0]
	app, _, _ := strings.Cut(first, "@")
	m.cfg.Notices.Warn(kind, fmt.Sprintf("output %s: app %s has outputs under way at %s too, and only one of the two "+
		"can have the name %s; name another place, or remove %s/_temporary/%s if that app is over",
		one.Name, app, one.To, leave.Folder, place, first))
	m.cfg.Log.Warn("another app has the same output under way", "output", one.Name, "to", one.To, "runs", rivals)
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
func (m *Manager) withinStaging(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := m.cfg.App.Settings.StageTimeout.Duration()
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fault.StageTimeout(limit))
}

// dropOlder empties the local folders that another run has left in this work folder: its results are not this one's.
func (m *Manager) dropOlder(p plan.Plan, in registry.Instance, work files.Folder, folder *os.Root) error {
	owner, mark := m.outputsOwner(), outputsMark(in)
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
func (m *Manager) leaveOf(ctx context.Context, p plan.Plan, one plan.Output) (data.Leave, error) {
	store, path, err := m.cfg.Stores.Open(ctx, p, one.To, true)
	return data.Leave{
		Store: store, Out: path, Folder: cmp.Or(p.Outputs.Folder, one.Name), Run: m.outputsOwner(),
		Turn:  m.cfg.Self.Inc,
		Saves: p.Outputs.Interim,
	}, err
}

// outputTransfer leaves outputs as the definition says.
func (m *Manager) outputTransfer(out *plan.Outputs) transfer.Transfer {
	t := m.Transfer()
	t.Parallel = out.Parallel
	return t
}

// outputsOwner is whose outputs these are: this life of the app in this registry. One that was forgotten is another's,
// whatever it was called.
func (m *Manager) outputsOwner() string {
	m.mu.Lock()
	founded := m.founded
	m.mu.Unlock()
	if seat := m.cfg.Membership(); seat != nil {
		founded = seat.Founded()
	}
	return m.cfg.Self.AppID + "@" + m.cfg.Self.Run + "@" + strconv.FormatInt(founded.UnixMilli(), 36)
}

// Ended tells the machine that a process has ended, once what it leaves is where it belongs; first, unless nil, comes
// before.
func (m *Manager) Ended(e machine.Event, first func(context.Context)) {
	if first != nil {
		ctx, cancel := m.mayCallOff()
		m.tasks.Go(func() {
			first(ctx)
			cancel(nil)
			m.Ended(e, nil)
		})
		return
	}
	p := m.cfg.Process.Plan()
	if !toLeave(p, e.Exit, m.cfg.Loop.State()) {
		m.cfg.Loop.Tell(e)
		return
	}
	ctx, cancel := m.mayCallOff()
	m.tasks.Go(func() {
		defer cancel(nil)
		ctx, stop := m.withinStaging(ctx)
		defer stop()
		defer m.showLeaving()()
		m.awaitSaves()
		if err := m.leaveOutputs(ctx, p); err != nil {
			m.cfg.Log.Error("outputs are not left", "err", err)
			if s := m.cfg.Loop.State(); s.Reason == machine.ForVerdict && succeeded(s) {
				m.oweOutputs(err)
			}
			e.Exit = notLeft(e.Exit, err)
		}
		m.cfg.Loop.Tell(e)
	})
}

// mayCallOff is for what a kill gives up.
func (m *Manager) mayCallOff() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callOff = cancel
	return ctx, cancel
}

// toLeave tells whether the end of a process is one after which its outputs are left: its own success; the job's,
// where that is its usual end (a parameter server's, an evaluator's); and a failure, where that is asked for. A worker
// that a partial success ends is in the middle of something.
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

// CallOff gives up what follows the end of the process when the process would be killed; a job that has succeeded keeps
// its.
func (m *Manager) CallOff(s machine.State) {
	if s.Reason == machine.ForVerdict && succeeded(s) && s.Terms < 2 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.callOff != nil {
		m.callOff(errors.New("called off: " + cmp.Or(s.Cause, string(s.Reason), "it was to end")))
	}
}

// leaveOutputs copies the process's folders to where they belong.
func (m *Manager) leaveOutputs(ctx context.Context, p plan.Plan) (err error) {
	work, err := files.As(nil).Below(m.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		begun := time.Now()
		left, err := m.leaveOutput(ctx, p, one, work)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if len(left.Skipped) > 0 {
			m.cfg.Log.Warn("neither files nor folders are left out", "output", one.Name, "paths",
				strings.Join(left.Skipped, ", "))
		}
		m.cfg.Log.Info("output is left", "output", one.Name, "to", one.To, "files", left.Files, "bytes", left.Bytes,
			"took", time.Since(begun).Round(time.Millisecond))
	}
	return nil
}

func (m *Manager) leaveOutput(
	ctx context.Context, p plan.Plan, one plan.Output, work files.Folder,
) (_ data.Left, err error) {
	leave, err := m.leaveOf(ctx, p, one)
	if err != nil {
		return data.Left{}, err
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return m.leaveSaid(ctx, leave)
	}
	folder, err := work.Make(filepath.Join(p.Process.Folder, one.Name))
	if err != nil {
		return data.Left{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return leave.Upload(ctx, folder, m.outputTransfer(p.Outputs))
}

// notLeft is the end of a process whose success is not worth anything without what it made. A failure stays what it
// was.
func notLeft(x *machine.Exit, err error) *machine.Exit {
	if !x.OK() {
		return x
	}
	out := *x
	out.Code, out.Unseen, out.Final = nil, true, true
	out.Class, out.Message = registry.ClassData, wording.Short("it ended with 0, but "+err.Error())
	if fault.Is(err, registry.ClassTimeout) {
		out.Class = registry.ClassTimeout
	}
	return &out
}
