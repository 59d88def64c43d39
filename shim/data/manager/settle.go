package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/workdir"
)

// No master of the job gives outputs their names. Each agent does it for its own when it sees the verdict, and the
// agent that finds nothing left to settle makes _SUCCESS. The outputs of a lost agent are settled by the last agent, or
// by the one that is launched again in its place and finds the verdict.

// owedOutput is an output that was prepared and is not settled yet.
type owedOutput struct {
	name string
	data.Leave
}

// owes notes that an output was prepared.
func (m *Manager) owes(name string, leave data.Leave) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed = append(m.owed, owedOutput{name, leave})
}

// Finish settles the rest when the agent ends: a verdict may come while it still stages.
func (m *Manager) Finish() {
	s := m.cfg.Loop.State()
	if len(m.owedOutputs()) > 0 && s.Phase != machine.Superseded { // else the other holder settles them
		m.Settle(m.ctx, s)
		m.Conclude(m.ctx, s)
	}
}

func (m *Manager) owedOutputs() []owedOutput {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owed)
}

// settlePause is the time between two tries to settle an output.
const settlePause = 500 * time.Millisecond

// persist retries until do succeeds, cannot succeed, takes longer than muster.stage.timeout, or a signal asks the agent
// to end: after the machine's end, by CutShort.
func (m *Manager) persist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := m.withinStaging(ctx)
	defer cancel()
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, off := context.WithCancelCause(ctx)
	defer off(nil)
	terms := m.cfg.Loop.State().Terms
	watch.Go(func() {
		wait.Until(ctx, func() bool { return m.cfg.Loop.State().Terms > terms })
		off(errors.New("cancelled by a signal"))
	})
	for {
		err := do(ctx)
		_, taken := errors.AsType[*data.TakenError](err)
		if err == nil || taken || errors.Is(err, fs.ErrPermission) || wait.For(ctx, settlePause) != nil {
			return err
		}
	}
}

// Settle publishes or removes the outputs of this instance, as the verdict says. Without a verdict complete outputs
// stay for the next attempt of the run.
func (m *Manager) Settle(ctx context.Context, s machine.State) {
	m.awaitSaves()
	out := m.cfg.Process.Plan().Outputs
	failed := out != nil && out.Failed
	m.mu.Lock()
	owed := m.owed
	if s.Directive.Verdict != nil {
		m.owed = nil
	}
	m.mu.Unlock()
	for _, o := range owed {
		err := m.persist(ctx, func(ctx context.Context) error { return m.settleOutput(ctx, o, s, failed) })
		if err != nil {
			m.unsettled(fmt.Errorf("publish output %s: %w", o.name, err), s.Directive.Verdict)
		}
	}
}

func (m *Manager) settleOutput(ctx context.Context, o owedOutput, s machine.State, failed bool) error {
	v := s.Directive.Verdict
	switch {
	case v == nil && s.Directive.Drops(s.Instance):
		return o.GiveUp(ctx)
	case v == nil:
		return o.Clear(ctx)
	}
	if isOwed, err := o.Owed(ctx); isOwed || err != nil {
		return err
	}
	return m.settleFor(ctx, o, *v, failed)
}

// settleFor settles one output: it is published if it is complete and the job has succeeded, or if the definition keeps
// the outputs of failures.
func (m *Manager) settleFor(ctx context.Context, o owedOutput, v registry.Verdict, failed bool) error {
	if v.Outcome != registry.Succeeded && !failed {
		return o.GiveUp(ctx)
	}
	published, err := o.Publish(ctx)
	if published && err == nil {
		m.cfg.Log.Info("output published", "output", o.name, "in", o.Out, "folder", o.Folder)
	}
	return err
}

// oweOutputs marks outputs that could not be left after the verdict: their job gets no _SUCCESS.
func (m *Manager) oweOutputs(why error) {
	m.unsettled(why, m.cfg.Loop.State().Directive.Verdict)
	for _, o := range m.owedOutputs() {
		if err := m.persist(m.ctx, o.Owe); err != nil {
			m.cfg.Log.Error("output not marked as missing", "output", o.name, "err", err)
		}
	}
}

// unsettled notes that the job has succeeded and this agent has not done its part. The agent's exit code says so, and
// its launcher starts it again.
func (m *Manager) unsettled(err error, v *registry.Verdict) {
	m.cfg.Log.Error("outputs not finished", "err", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if v != nil && v.Outcome == registry.Succeeded {
		m.undone = err
	}
}

// Undone is why outputs of a run that succeeded are not where they belong; nil: they are.
func (m *Manager) Undone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.undone
}

// Conclude makes _SUCCESS, or clears up after a failure, once all instances have settled their outputs. The last agent
// settles the outputs of lost agents.
func (m *Manager) Conclude(ctx context.Context, s machine.State) {
	v, p := s.Directive.Verdict, m.cfg.Process.Plan()
	if v == nil || v.Run != m.cfg.Self.Run {
		return
	}
	m.forgetSplits(ctx, p)
	if p.Outputs == nil {
		return
	}
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		leave, err := m.leaveOf(ctx, p, one)
		if err == nil {
			err = m.persist(ctx, func(ctx context.Context) error {
				return m.concludeOne(ctx, owedOutput{one.Name, leave}, *v)
			})
		}
		if err != nil {
			m.unsettled(fmt.Errorf("output %s: %w", one.Name, err), v)
		}
	}
}

func (m *Manager) concludeOne(ctx context.Context, o owedOutput, v registry.Verdict) error {
	done, err := o.Conclude(ctx, v.Outcome == registry.Succeeded)
	if err == nil && !done {
		if err = m.settleGone(ctx, o, v); err == nil {
			done, err = o.Conclude(ctx, v.Outcome == registry.Succeeded)
		}
	}
	if err == nil && done && v.Outcome == registry.Succeeded {
		m.cfg.Log.Info("all outputs of the job published", "in", o.Out)
	}
	return err
}

// settleGone settles the outputs of instances without an agent, once no agent is left that would do so itself. An
// instance whose process was to leave outputs after the verdict is launched again for that.
func (m *Manager) settleGone(ctx context.Context, o owedOutput, v registry.Verdict) error {
	live, err := m.cfg.Gang.Live(ctx, m.cfg.Self.AppID)
	if err != nil || len(live) > 0 {
		return nil //nolint:nilerr // a registry that ends with its run: a relaunched agent looks again
	}
	st, err := m.cfg.Gang.Status(ctx, m.cfg.Self.AppID)
	if err != nil || st.App.Run != m.cfg.Self.Run {
		return nil //nolint:nilerr // as above
	}
	open, err := o.Open(ctx)
	if err != nil {
		return err
	}
	for _, name := range open {
		in, err := registry.ParseInstance(name)
		if err != nil || m.stillOwes(st, in) {
			continue
		}
		other := o
		other.Folder = name
		if isOwed, err := other.Owed(ctx); isOwed || err != nil {
			continue
		}
		if err := m.settleFor(ctx, other, v, m.leavesFailed(in)); err != nil {
			return err
		}
	}
	return nil
}

// stillOwes tells that an instance was running when the job succeeded and had outputs to leave then.
func (m *Manager) stillOwes(st consul.Status, in registry.Instance) bool {
	c := m.cfg.App.Component(in.Component)
	if c == nil || !endsWithJob(string(c.Settings.Role)) || st.Verdict == nil ||
		st.Verdict.Outcome != registry.Succeeded {
		return false
	}
	return slices.ContainsFunc(st.Members, func(one consul.MemberStatus) bool {
		return one.Instance == in && one.Run == m.cfg.Self.Run && one.Phase == registry.PhaseReady
	})
}

func (m *Manager) leavesFailed(in registry.Instance) bool {
	c := m.cfg.App.Component(in.Component)
	return c != nil && c.Settings.Outputs.Failed
}

// goneAgent is how long a relaunched agent waits for the proof that its predecessor has ended: a little more than a
// session lives.
const goneAgent = 40 * time.Second

// AfterVerdict completes the work of agents that were killed after the verdict of the run: a relaunched agent finds the
// verdict. Without an index of its own it does so for all lost agents.
func (m *Manager) AfterVerdict(ctx context.Context, refusal error) {
	over, ok := errors.AsType[*conductor.FinishedError](refusal)
	if !ok || over.Verdict.Run != m.cfg.Self.Run || !slices.ContainsFunc(m.cfg.App.Components, data.LeavesOutputs) {
		return
	}
	st, err := m.gone(ctx)
	if err != nil {
		m.cfg.Log.Warn("outputs are left to the other agents of the run", "err", err)
		return
	}
	m.mu.Lock()
	m.founded = st.App.Created
	m.mu.Unlock()
	for _, in := range m.leavers() {
		if err := m.completeOutputs(ctx, in, st, over.Verdict); err != nil {
			m.unsettled(fmt.Errorf("outputs of %s: %w", in, err), &over.Verdict)
		}
	}
}

// leavers are the instances to complete: this agent's, or all that leave outputs.
func (m *Manager) leavers() []registry.Instance {
	if m.cfg.Self.Instance != nil {
		return []registry.Instance{*m.cfg.Self.Instance}
	}
	var all []registry.Instance
	for _, c := range m.cfg.App.Components {
		for i := range c.Instances {
			only := c.Settings.Outputs.Only
			if data.LeavesOutputs(c) && (only == nil || *only == i) {
				all = append(all, registry.Instance{Component: c.Name, Index: i})
			}
		}
	}
	return all
}

// completeOutputs does the rest of an instance's former agent.
func (m *Manager) completeOutputs(
	ctx context.Context, in registry.Instance, st consul.Status, v registry.Verdict,
) error {
	c := m.cfg.App.Component(in.Component)
	if c == nil || !data.LeavesOutputs(*c) {
		return nil
	}
	p, err := m.cfg.Gang.PlanAgain(ctx, in)
	if err != nil {
		return err
	}
	if p.Outputs == nil {
		return nil
	}
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		leave, err := m.leaveOf(ctx, p, one)
		if err != nil {
			return err
		}
		o := owedOutput{one.Name, leave}
		open, err := o.Open(ctx)
		if err == nil && slices.Contains(open, o.Folder) {
			err = m.completeOutput(ctx, o, p, in, st, v)
		}
		if err == nil {
			err = m.concludeOne(ctx, o, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) completeOutput(
	ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance, st consul.Status, v registry.Verdict,
) error {
	if v.Outcome == registry.Succeeded && m.stillOwes(st, in) {
		err := m.leaveLate(ctx, o, p, in)
		if err != nil && m.cfg.Self.Instance == nil {
			return nil //nolint:nilerr // it belongs to an agent of another host
		}
		if err != nil {
			return errors.Join(fmt.Errorf("leave its results: %w", err), o.Owe(ctx))
		}
	}
	if isOwed, err := o.Owed(ctx); isOwed || err != nil {
		return err
	}
	return m.persist(ctx, func(ctx context.Context) error { return m.settleFor(ctx, o, v, p.Outputs.Failed) })
}

// gone waits for the proof that no agent is left whose outputs this one would complete.
func (m *Manager) gone(ctx context.Context) (st consul.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, goneAgent)
	defer cancel()
	wait.Until(ctx, func() bool {
		if st, err = m.cfg.Gang.Status(ctx, m.cfg.Self.AppID); err != nil {
			return false
		}
		i := slices.IndexFunc(st.Members, func(one consul.MemberStatus) bool {
			return one.Live && (m.cfg.Self.Instance == nil || one.Instance == *m.cfg.Self.Instance)
		})
		if i < 0 {
			return true
		}
		dead := m.cfg.Self.Instance != nil && m.cfg.Gang.Dead(st.Members[i].Member)
		if !dead {
			err = fmt.Errorf("the agent of %s still holds its index", st.Members[i].Instance)
		}
		return dead
	})
	return st, err
}

// leaveLate leaves the results of an instance of this host whose agent was killed after the verdict.
func (m *Manager) leaveLate(ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance) (err error) {
	work, err := files.Below(m.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	owner, err := work.ReadFile(workdir.OutputsMark(in.String()))
	if err != nil || string(owner) != m.outputsOwner() {
		return errors.New("its folders are not on this host")
	}
	for _, one := range p.Outputs.To {
		if one.Name == o.name {
			_, err = m.leaveOutput(ctx, p, one)
		}
	}
	return err
}
