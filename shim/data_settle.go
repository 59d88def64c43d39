package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wait"
)

// There is no master of the job to give outputs their names. Each agent does so for its own when it sees the verdict, and
// whoever finds nothing left to be settled makes _SUCCESS. What an agent that is gone has left is settled by the last one,
// or by the one that is launched again in its place and finds the verdict.

// owedOutput is an output that room was made for.
type owedOutput struct {
	name string
	data.Leave
}

// owes notes that there is room for an output.
func (d *dataManager) owes(name string, leave data.Leave) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owed = append(d.owed, owedOutput{name, leave})
}

// finish settles what is not settled when the agent ends: a verdict may come while it still stages.
func (d *dataManager) finish() {
	s := d.cfg.Loop.State()
	if len(d.owedOutputs()) > 0 && s.Phase != machine.Superseded { // else it is the other's
		d.settleOutputs(d.ctx, s)
		d.concludeOutputs(d.ctx, s)
	}
}

func (d *dataManager) owedOutputs() []owedOutput {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.owed)
}

// settlePause is how long a store is given that did not do what settles an output.
const settlePause = 500 * time.Millisecond

// persist tries until it is done, cannot be, takes longer than muster.stage.timeout, or a signal says that it has to end.
func (d *dataManager) persist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := d.withinStaging(ctx)
	defer cancel()
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, off := context.WithCancelCause(ctx)
	defer off(nil)
	terms := d.cfg.Loop.State().Terms
	watch.Go(func() {
		wait.Until(ctx, func() bool { return d.cfg.Loop.State().Terms > terms })
		off(errors.New("called off by a signal"))
	})
	for {
		err := do(ctx)
		_, taken := errors.AsType[*data.TakenError](err)
		if err == nil || taken || errors.Is(err, fs.ErrPermission) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(settlePause):
		}
	}
}

// settleOutputs gives the outputs of this instance their names, or takes them away, as the verdict says. Without one
// what is whole stays, and is there when the run goes on.
func (d *dataManager) settleOutputs(ctx context.Context, s machine.State) {
	d.awaitSaves()
	out := d.cfg.Process.Plan().Outputs
	failed := out != nil && out.Failed
	d.mu.Lock()
	owed := d.owed
	if s.Directive.Verdict != nil {
		d.owed = nil
	}
	d.mu.Unlock()
	for _, o := range owed {
		err := d.persist(ctx, func(ctx context.Context) error { return d.settleOutput(ctx, o, s, failed) })
		if err != nil {
			d.unsettled(fmt.Errorf("output %s is not at its place: %w", o.name, err), s.Directive.Verdict)
		}
	}
}

func (d *dataManager) settleOutput(ctx context.Context, o owedOutput, s machine.State, failed bool) error {
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
	return d.settleFor(ctx, o, *v, failed)
}

// settleFor is the verdict's word on an output: of a success what is whole counts, of a failure where that is asked for.
func (d *dataManager) settleFor(ctx context.Context, o owedOutput, v registry.Verdict, failed bool) error {
	if v.Outcome != registry.Succeeded && !failed {
		return o.GiveUp(ctx)
	}
	revealed, err := o.Reveal(ctx)
	if revealed && err == nil {
		d.cfg.Log.Info("output has its name", "output", o.name, "in", o.Out, "folder", o.Folder)
	}
	return err
}

// oweOutputs marks that outputs could not be left after the verdict: their job has no _SUCCESS.
func (d *dataManager) oweOutputs(why error) {
	d.unsettled(why, d.cfg.Loop.State().Directive.Verdict)
	for _, o := range d.owedOutputs() {
		if err := d.persist(d.ctx, o.Owe); err != nil {
			d.cfg.Log.Error("mark an output as missing", "output", o.name, "err", err)
		}
	}
}

// unsettled notes that the job has succeeded and this agent has not done its part: it says so by its exit code, so that
// whoever launched it comes back.
func (d *dataManager) unsettled(err error, v *registry.Verdict) {
	d.cfg.Log.Error("outputs are not settled", "err", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if v != nil && v.Outcome == registry.Succeeded {
		d.undone = err
	}
}

func (d *dataManager) undoneOutputs() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.undone
}

// concludeOutputs makes _SUCCESS, or clears up after a failure, when nobody's outputs are open. The last agent settles
// what those have left that are gone.
func (d *dataManager) concludeOutputs(ctx context.Context, s machine.State) {
	v, p := s.Directive.Verdict, d.cfg.Process.Plan()
	if v == nil || v.Run != d.cfg.Run || p.Outputs == nil {
		return
	}
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		leave, err := d.leaveOf(ctx, p, one)
		if err == nil {
			err = d.persist(ctx, func(ctx context.Context) error { return d.conclude(ctx, owedOutput{one.Name, leave}, *v) })
		}
		if err != nil {
			d.unsettled(fmt.Errorf("output %s: %w", one.Name, err), v)
		}
	}
}

func (d *dataManager) conclude(ctx context.Context, o owedOutput, v registry.Verdict) error {
	done, err := o.Conclude(ctx, v.Outcome == registry.Succeeded)
	if err == nil && !done {
		if err = d.settleGone(ctx, o, v); err == nil {
			done, err = o.Conclude(ctx, v.Outcome == registry.Succeeded)
		}
	}
	if err == nil && done && v.Outcome == registry.Succeeded {
		d.cfg.Log.Info("all outputs of the job are there", "in", o.Out)
	}
	return err
}

// settleGone settles what instances have left whose agents are gone, once no agent is left that would do so itself. One
// whose process was to leave something after the verdict is launched again for that.
func (d *dataManager) settleGone(ctx context.Context, o owedOutput, v registry.Verdict) error {
	live, err := d.cfg.Registry.Live(ctx, d.cfg.AppID)
	if err != nil || len(live) > 0 {
		return nil //nolint:nilerr // a registry that ends with its run: whoever is launched again looks
	}
	st, err := d.cfg.Registry.Status(ctx, d.cfg.AppID)
	if err != nil || st.App.Run != d.cfg.Run {
		return nil //nolint:nilerr // as above
	}
	open, err := o.Open(ctx)
	if err != nil {
		return err
	}
	for _, name := range open {
		in, err := registry.ParseInstance(name)
		if err != nil || d.stillOwes(st, in) {
			continue
		}
		other := o
		other.Folder = name
		if isOwed, err := other.Owed(ctx); isOwed || err != nil {
			continue
		}
		if err := d.settleFor(ctx, other, v, d.leavesFailed(in)); err != nil {
			return err
		}
	}
	return nil
}

// stillOwes tells that an instance was at work when the job succeeded and had something to leave then.
func (d *dataManager) stillOwes(st consul.Status, in registry.Instance) bool {
	c := d.cfg.App.Component(in.Component)
	if c == nil || !endsWithJob(string(c.Settings.Role)) || st.Verdict == nil || st.Verdict.Outcome != registry.Succeeded {
		return false
	}
	return slices.ContainsFunc(st.Members, func(m consul.MemberStatus) bool {
		return m.Instance == in && m.Run == d.cfg.Run && m.Phase == registry.PhaseReady
	})
}

func (d *dataManager) leavesFailed(in registry.Instance) bool {
	c := d.cfg.App.Component(in.Component)
	return c != nil && c.Settings.Outputs.Failed
}

// goneAgent is how long an agent that was launched again waits for the proof that the one before it is gone: a little more
// than its session lives.
const goneAgent = 40 * time.Second

// afterVerdict completes what agents that were killed after the verdict of the run have left undone: the agent that is
// launched again in the place of one finds the verdict. Without an index it does so for whoever is gone.
func (d *dataManager) afterVerdict(ctx context.Context, refusal error) {
	over, ok := errors.AsType[*conductor.FinishedError](refusal)
	if !ok || over.Verdict.Run != d.cfg.Run || !slices.ContainsFunc(d.cfg.App.Components, LeavesSomething) {
		return
	}
	st, err := d.gone(ctx)
	if err != nil {
		d.cfg.Log.Warn("outputs of the run are left to its other agents", "err", err)
		return
	}
	d.mu.Lock()
	d.founded = st.App.Created
	d.mu.Unlock()
	for _, in := range d.leavers() {
		if err := d.completeOutputs(ctx, in, st, over.Verdict); err != nil {
			d.unsettled(fmt.Errorf("outputs of %s: %w", in, err), &over.Verdict)
		}
	}
}

// LeavesSomething tells that instances of a component leave outputs somewhere.
func LeavesSomething(c appdef.Component) bool {
	return c.Instances > 0 && len(c.Settings.Outputs.To) > 0
}

// leavers are the instances to complete: this agent's, or all those that leave something.
func (d *dataManager) leavers() []registry.Instance {
	if d.cfg.Instance != nil {
		return []registry.Instance{*d.cfg.Instance}
	}
	var all []registry.Instance
	for _, c := range d.cfg.App.Components {
		for i := range c.Instances {
			only := c.Settings.Outputs.Only
			if LeavesSomething(c) && (only == nil || *only == i) {
				all = append(all, registry.Instance{Component: c.Name, Index: i})
			}
		}
	}
	return all
}

// completeOutputs does what the former agent of an instance would have done.
func (d *dataManager) completeOutputs(ctx context.Context, in registry.Instance, st consul.Status, v registry.Verdict) error {
	c := d.cfg.App.Component(in.Component)
	if c == nil || !LeavesSomething(*c) {
		return nil
	}
	p, err := d.cfg.PlanAgain(ctx, in)
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
		leave, err := d.leaveOf(ctx, p, one)
		if err != nil {
			return err
		}
		o := owedOutput{one.Name, leave}
		open, err := o.Open(ctx)
		if err == nil && slices.Contains(open, o.Folder) {
			err = d.completeOutput(ctx, o, p, in, st, v)
		}
		if err == nil {
			err = d.conclude(ctx, o, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dataManager) completeOutput(ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance, st consul.Status, v registry.Verdict) error {
	if v.Outcome == registry.Succeeded && d.stillOwes(st, in) {
		err := d.leaveLate(ctx, o, p, in)
		if err != nil && d.cfg.Instance == nil {
			return nil //nolint:nilerr // it is another's, on another host
		}
		if err != nil {
			return errors.Join(fmt.Errorf("what it had made is not left: %w", err), o.Owe(ctx))
		}
	}
	if isOwed, err := o.Owed(ctx); isOwed || err != nil {
		return err
	}
	return d.persist(ctx, func(ctx context.Context) error { return d.settleFor(ctx, o, v, p.Outputs.Failed) })
}

// gone waits for the proof that no agent is at work whose outputs this one would complete.
func (d *dataManager) gone(ctx context.Context) (st consul.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, goneAgent)
	defer cancel()
	wait.Until(ctx, func() bool {
		if st, err = d.cfg.Registry.Status(ctx, d.cfg.AppID); err != nil {
			return false
		}
		i := slices.IndexFunc(st.Members, func(m consul.MemberStatus) bool {
			return m.Live && (d.cfg.Instance == nil || m.Instance == *d.cfg.Instance)
		})
		if i < 0 {
			return true
		}
		dead := d.cfg.Instance != nil && d.cfg.Dead(st.Members[i].Member)
		if !dead {
			err = fmt.Errorf("the agent of %s still holds its index", st.Members[i].Instance)
		}
		return dead
	})
	return st, err
}

// leaveLate copies what an instance of this host had made when its agent was killed after the verdict.
func (d *dataManager) leaveLate(ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance) (err error) {
	work, err := files.As(nil).Below(d.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	owner, err := work.ReadFile(outputsMark(in))
	if err != nil || string(owner) != d.outputsOwner() {
		return errors.New("its folders are not on this host")
	}
	for _, one := range p.Outputs.To {
		if one.Name == o.name {
			_, err = d.leaveOutput(ctx, p, one, work)
		}
	}
	return err
}
