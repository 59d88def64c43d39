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
)

// There is no master of the job to give outputs their names. Each agent does so for its own when it sees the verdict,
// and whoever finds nothing left to be settled makes _SUCCESS. What an agent that is gone has left is settled by the
// last one, or by the one that is launched again in its place and finds the verdict.

// owedOutput is an output that room was made for.
type owedOutput struct {
	name string
	data.Leave
}

// owes notes that there is room for an output.
func (m *Manager) owes(name string, leave data.Leave) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed = append(m.owed, owedOutput{name, leave})
}

// Finish settles what is not settled when the agent ends: a verdict may come while it still stages.
func (m *Manager) Finish() {
	s := m.cfg.Loop.State()
	if len(m.owedOutputs()) > 0 && s.Phase != machine.Superseded { // else it is the other's
		m.Settle(m.ctx, s)
		m.Conclude(m.ctx, s)
	}
}

func (m *Manager) owedOutputs() []owedOutput {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owed)
}

// settlePause is how long a store is given that did not do what settles an output.
const settlePause = 500 * time.Millisecond

// persist tries until it is done, cannot be, takes longer than muster.stage.timeout, or a signal says that it has to
// end.
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
		off(errors.New("called off by a signal"))
	})
	for {
		err := do(ctx)
		_, taken := errors.AsType[*data.TakenError](err)
		if err == nil || taken || errors.Is(err, fs.ErrPermission) || wait.For(ctx, settlePause) != nil {
			return err
		}
	}
}

// Settle gives the outputs of this instance their names, or takes them away, as the verdict says. Without one
// what is whole stays, and is there when the run goes on.
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
			m.unsettled(fmt.Errorf("output %s is not at its place: %w", o.name, err), s.Directive.Verdict)
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

// settleFor is the verdict's word on an output: of a success what is whole counts, of a failure where that is asked
// for.
func (m *Manager) settleFor(ctx context.Context, o owedOutput, v registry.Verdict, failed bool) error {
	if v.Outcome != registry.Succeeded && !failed {
		return o.GiveUp(ctx)
	}
	revealed, err := o.Reveal(ctx)
	if revealed && err == nil {
		m.cfg.Log.Info("output has its name", "output", o.name, "in", o.Out, "folder", o.Folder)
	}
	return err
}

// oweOutputs marks that outputs could not be left after the verdict: their job has no _SUCCESS.
func (m *Manager) oweOutputs(why error) {
	m.unsettled(why, m.cfg.Loop.State().Directive.Verdict)
	for _, o := range m.owedOutputs() {
		if err := m.persist(m.ctx, o.Owe); err != nil {
			m.cfg.Log.Error("mark an output as missing", "output", o.name, "err", err)
		}
	}
}

// unsettled notes that the job has succeeded and this agent has not done its part: it says so by its exit code, so that
// whoever launched it comes back.
func (m *Manager) unsettled(err error, v *registry.Verdict) {
	m.cfg.Log.Error("outputs are not settled", "err", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if v != nil && v.Outcome == registry.Succeeded {
		m.undone = err
	}
}

func (m *Manager) Undone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.undone
}

// Conclude makes _SUCCESS, or clears up after a failure, when nobody's outputs are open. The last agent settles
// what those have left that are gone.
func (m *Manager) Conclude(ctx context.Context, s machine.State) {
	v, p := s.Directive.Verdict, m.cfg.Process.Plan()
	if v == nil || v.Run != m.cfg.Self.Run || p.Outputs == nil {
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
		m.cfg.Log.Info("all outputs of the job are there", "in", o.Out)
	}
	return err
}

// settleGone settles what instances have left whose agents are gone, once no agent is left that would do so itself. One
// whose process was to leave something after the verdict is launched again for that.
func (m *Manager) settleGone(ctx context.Context, o owedOutput, v registry.Verdict) error {
	live, err := m.cfg.Gang.Live(ctx, m.cfg.Self.AppID)
	if err != nil || len(live) > 0 {
		return nil //nolint:nilerr // a registry that ends with its run: whoever is launched again looks
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

// stillOwes tells that an instance was at work when the job succeeded and had something to leave then.
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

// goneAgent is how long an agent that was launched again waits for the proof that the one before it is gone: a little
// more than its session lives.
const goneAgent = 40 * time.Second

// AfterVerdict completes what agents that were killed after the verdict of the run have left undone: the agent that is
// launched again in the place of one finds the verdict. Without an index it does so for whoever is gone.
func (m *Manager) AfterVerdict(ctx context.Context, refusal error) {
	over, ok := errors.AsType[*conductor.FinishedError](refusal)
	if !ok || over.Verdict.Run != m.cfg.Self.Run || !slices.ContainsFunc(m.cfg.App.Components, data.LeavesOutputs) {
		return
	}
	st, err := m.gone(ctx)
	if err != nil {
		m.cfg.Log.Warn("outputs of the run are left to its other agents", "err", err)
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

// leavers are the instances to complete: this agent's, or all those that leave something.
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

// completeOutputs does what the former agent of an instance would have done.
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
			return nil //nolint:nilerr // it is another's, on another host
		}
		if err != nil {
			return errors.Join(fmt.Errorf("what it had made is not left: %w", err), o.Owe(ctx))
		}
	}
	if isOwed, err := o.Owed(ctx); isOwed || err != nil {
		return err
	}
	return m.persist(ctx, func(ctx context.Context) error { return m.settleFor(ctx, o, v, p.Outputs.Failed) })
}

// gone waits for the proof that no agent is at work whose outputs this one would complete.
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

// leaveLate copies what an instance of this host had made when its agent was killed after the verdict.
func (m *Manager) leaveLate(ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance) (err error) {
	work, err := files.As(nil).Below(m.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	owner, err := work.ReadFile(outputsMark(in))
	if err != nil || string(owner) != m.outputsOwner() {
		return errors.New("its folders are not on this host")
	}
	for _, one := range p.Outputs.To {
		if one.Name == o.name {
			_, err = m.leaveOutput(ctx, p, one, work)
		}
	}
	return err
}
