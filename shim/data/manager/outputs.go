package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/muster-agent/muster/shim/workdir"
)

// warnOutputs and an output's name is a warning's kind: another app writes to the same location.
const warnOutputs = "outputs"

// prepareOutputs makes the local folders of outputs, and makes sure that their content can be left later.
func (m *Manager) prepareOutputs(
	ctx context.Context, p plan.Plan, in registry.Instance, work files.Folder, folder files.UserFolder,
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
			return fmt.Errorf("muster.output.%s: %w", one.Name, withURL(err, one.To))
		}
		if err := m.classSees(p, one); err != nil {
			return fmt.Errorf("muster.output.%s: %w", one.Name, err)
		}
		m.owes(one.Name, leave)
		m.warnRivals(ctx, one, leave)
	}
	return nil
}

// warnRivals warns of another app whose outputs would get the same name: only one of the two can have it.
func (m *Manager) warnRivals(ctx context.Context, one plan.Output, leave data.Leave) {
	rivals, err := leave.Rivals(ctx)
	if err != nil {
		m.cfg.Log.Warn("apps with the same output not looked up", "output", one.Name, "to", one.To, "err", err)
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
	m.cfg.Log.Warn("another app writes to the same output", "output", one.Name, "to", one.To, "runs", rivals)
}

// withURL adds the filesystem to the error of an output that exists.
func withURL(err error, url string) error {
	taken, ok := errors.AsType[*data.TakenError](err)
	if !ok {
		return err
	}
	return &data.TakenError{Out: url, Path: strings.TrimRight(url, "/") + strings.TrimPrefix(taken.Path, taken.Out)}
}

// withinStaging limits the bringing or leaving of data to muster.stage.timeout.
func (m *Manager) withinStaging(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := m.cfg.App.Settings.StageTimeout.Duration()
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fault.StageTimeout(limit))
}

// dropOlder empties the local folders that another run left in this work folder.
func (m *Manager) dropOlder(p plan.Plan, in registry.Instance, work files.Folder, folder files.UserFolder) error {
	owner, mark := m.outputsOwner(), workdir.OutputsMark(in.String())
	if text, err := work.ReadFile(mark); err == nil && string(text) == owner {
		return nil
	}
	for _, one := range p.Outputs.To {
		if err := folder.Clear(one.Name); err != nil {
			return fmt.Errorf("output %s: of another run: %w", one.Name, err)
		}
	}
	return work.WriteHere(mark, owner)
}

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

// outputsOwner is this life of the app in this registry. An app of the same name that was forgotten is another owner.
func (m *Manager) outputsOwner() string {
	m.mu.Lock()
	founded := m.founded
	m.mu.Unlock()
	if membership := m.cfg.Membership(); membership != nil {
		founded = membership.Founded()
	}
	return m.cfg.Self.AppID + "@" + m.cfg.Self.Run + "@" + strconv.FormatInt(founded.UnixMilli(), 36)
}

// Ended tells the machine that a process has ended, after its outputs were left. first, unless nil, runs before that.
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
			m.cfg.Log.Error("outputs not left", "err", err)
			if s := m.cfg.Loop.State(); s.Reason == machine.ForVerdict && succeeded(s) {
				m.oweOutputs(err)
			}
			e.Exit = notLeft(e.Exit, err)
		}
		m.cfg.Loop.Tell(e)
	})
}

// mayCallOff makes the context of work that a kill cancels.
func (m *Manager) mayCallOff() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callOff = cancel
	return ctx, cancel
}

// toLeave tells whether outputs are left after this end of a process: after its own success; after the job's success,
// if its role ends with the job (parameter server, evaluator); after a failure, if the definition asks for that. A
// worker that is stopped by a partial success is in the middle of its work.
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

// endsWithJob tells the roles whose processes run until the job has succeeded.
func endsWithJob(role string) bool {
	return role != string(appdef.RoleChief) && role != string(appdef.RoleWorker)
}

func succeeded(s machine.State) bool {
	v := s.Directive.Verdict
	return v != nil && v.Outcome == registry.Succeeded
}

// CallOff cancels the leaving of outputs when the process would be killed. The outputs of a job that has succeeded are
// still left.
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

// leaveOutputs copies the process's folders to their stores.
func (m *Manager) leaveOutputs(ctx context.Context, p plan.Plan) error {
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		begun := time.Now()
		left, err := m.leaveOutput(ctx, p, one)
		if err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
		if len(left.Skipped) > 0 {
			m.cfg.Log.Warn("output has special files, which are not left", "output", one.Name, "paths",
				strings.Join(left.Skipped, ", "))
		}
		m.cfg.Log.Info("output is left", "output", one.Name, "to", one.To, "files", left.Files, "bytes", left.Bytes,
			"took", time.Since(begun).Round(time.Millisecond))
	}
	return nil
}

func (m *Manager) leaveOutput(ctx context.Context, p plan.Plan, one plan.Output) (_ data.Left, err error) {
	leave, err := m.leaveOf(ctx, p, one)
	if err != nil {
		return data.Left{}, err
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return m.leaveStdout(ctx, p, one, leave)
	}
	folder, err := m.outputFolder(p, one)
	if err != nil {
		return data.Left{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return leave.Upload(ctx, folder, m.outputTransfer(p.Outputs))
}

// outputFolder opens the local folder of an output, which the process may have removed.
func (m *Manager) outputFolder(p plan.Plan, one plan.Output) (_ files.UserFolder, err error) {
	folder, err := m.instanceFolder(p)
	if err != nil {
		return files.UserFolder{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return folder.Make(one.Name)
}

// notLeft is the end of a process that succeeded and whose outputs could not be left. A failure stays as it was.
func notLeft(x *machine.Exit, err error) *machine.Exit {
	if !x.OK() {
		return x
	}
	out := *x
	out.Code, out.Unseen, out.Final = nil, true, true
	out.Class, out.Message = registry.ClassData, wording.Short("it ended with 0, but "+err.Error())
	for _, class := range []registry.Class{registry.ClassTimeout, registry.ClassDefinition} {
		if fault.Is(err, class) {
			out.Class = class
		}
	}
	return &out
}
