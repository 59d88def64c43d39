package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
	"github.com/muster-agent/muster/shim/wait"
)

// There is no master of the job to give outputs their names. Each agent does so for its own when it sees the verdict, and
// whoever finds nothing left to be settled makes _SUCCESS. What an agent that is gone has left is settled by the last one,
// or by the one that is launched again in its place and finds the verdict.

// owedOutput is an output that room was made for.
type owedOutput struct {
	name string
	stage.Leave
}

// owes notes that there is room for an output. What is not settled when the agent leaves is when it ends: a verdict may
// come while it still stages.
func (a *agent) owes(name string, leave stage.Leave) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.owed) == 0 {
		a.closers = append(a.closers, func() {
			s := a.loop.State()
			if len(a.owedOutputs()) > 0 && s.Phase != machine.Superseded { // else it is the other's
				a.settleOutputs(context.Background(), s)
				a.concludeOutputs(context.Background(), s)
			}
		})
	}
	a.owed = append(a.owed, owedOutput{name, leave})
}

func (a *agent) owedOutputs() []owedOutput {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.owed)
}

// settlePause is how long a store is given that did not do what settles an output.
const settlePause = 500 * time.Millisecond

// persist tries until it is done, cannot be, takes longer than muster.stage.timeout, or a signal says that it has to end.
func (a *agent) persist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := a.withinStaging(ctx)
	defer cancel()
	ctx, off := context.WithCancelCause(ctx)
	defer off(nil)
	go func(terms int) {
		wait.Until(ctx, func() bool { return a.loop.State().Terms > terms })
		off(errors.New("called off by a signal"))
	}(a.loop.State().Terms)
	for {
		err := do(ctx)
		_, taken := errors.AsType[*stage.TakenError](err)
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
func (a *agent) settleOutputs(ctx context.Context, s machine.State) {
	a.awaitSaves()
	a.mu.Lock()
	owed, failed := a.owed, a.plan.Outputs != nil && a.plan.Outputs.Failed
	if s.Directive.Verdict != nil {
		a.owed = nil
	}
	a.mu.Unlock()
	for _, o := range owed {
		err := a.persist(ctx, func(ctx context.Context) error { return a.settleOutput(ctx, o, s, failed) })
		if err != nil {
			a.unsettled(fmt.Errorf("output %s is not at its place: %w", o.name, err), s.Directive.Verdict)
		}
	}
}

func (a *agent) settleOutput(ctx context.Context, o owedOutput, s machine.State, failed bool) error {
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
	return a.settleFor(ctx, o, *v, failed)
}

// settleFor is the verdict's word on an output: of a success what is whole counts, of a failure where that is asked for.
func (a *agent) settleFor(ctx context.Context, o owedOutput, v registry.Verdict, failed bool) error {
	if v.Outcome != registry.Succeeded && !failed {
		return o.GiveUp(ctx)
	}
	revealed, err := o.Reveal(ctx)
	if revealed && err == nil {
		a.log.Info("output has its name", "output", o.name, "in", o.Out, "folder", o.Folder)
	}
	return err
}

// oweOutputs marks that outputs could not be left after the verdict: their job has no _SUCCESS.
func (a *agent) oweOutputs(why error) {
	a.unsettled(why, a.loop.State().Directive.Verdict)
	for _, o := range a.owedOutputs() {
		if err := a.persist(context.Background(), o.Owe); err != nil {
			a.log.Error("mark an output as missing", "output", o.name, "err", err)
		}
	}
}

// unsettled notes that the job has succeeded and this agent has not done its part: it says so by its exit code, so that
// whoever launched it comes back.
func (a *agent) unsettled(err error, v *registry.Verdict) {
	a.log.Error("outputs are not settled", "err", err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if v != nil && v.Outcome == registry.Succeeded {
		a.undone = err
	}
}

func (a *agent) undoneOutputs() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.undone
}

// concludeOutputs makes _SUCCESS, or clears up after a failure, when nobody's outputs are open. The last agent settles
// what those have left that are gone.
func (a *agent) concludeOutputs(ctx context.Context, s machine.State) {
	v, p := s.Directive.Verdict, a.currentPlan()
	if v == nil || v.Run != a.id.run || p.Outputs == nil {
		return
	}
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		leave, err := a.leaveOf(ctx, p, one)
		if err == nil {
			err = a.persist(ctx, func(ctx context.Context) error { return a.conclude(ctx, owedOutput{one.Name, leave}, *v) })
		}
		if err != nil {
			a.unsettled(fmt.Errorf("output %s: %w", one.Name, err), v)
		}
	}
}

func (a *agent) conclude(ctx context.Context, o owedOutput, v registry.Verdict) error {
	done, err := o.Conclude(ctx, v.Outcome == registry.Succeeded)
	if err == nil && !done {
		if err = a.settleGone(ctx, o, v); err == nil {
			done, err = o.Conclude(ctx, v.Outcome == registry.Succeeded)
		}
	}
	if err == nil && done && v.Outcome == registry.Succeeded {
		a.log.Info("all outputs of the job are there", "in", o.Out)
	}
	return err
}

// settleGone settles what instances have left whose agents are gone, once no agent is left that would do so itself. One
// whose process was to leave something after the verdict is launched again for that.
func (a *agent) settleGone(ctx context.Context, o owedOutput, v registry.Verdict) error {
	live, err := a.client.Live(ctx, a.id.appID)
	if err != nil || len(live) > 0 {
		return nil //nolint:nilerr // a registry that ends with its run: whoever is launched again looks
	}
	st, err := a.client.Status(ctx, a.id.appID)
	if err != nil || st.App.Run != a.id.run {
		return nil //nolint:nilerr // as above
	}
	open, err := o.Open(ctx)
	if err != nil {
		return err
	}
	for _, name := range open {
		in, err := registry.ParseInstance(name)
		if err != nil || a.stillOwes(st, in) {
			continue
		}
		other := o
		other.Folder = name
		if isOwed, err := other.Owed(ctx); isOwed || err != nil {
			continue
		}
		if err := a.settleFor(ctx, other, v, a.leavesFailed(in)); err != nil {
			return err
		}
	}
	return nil
}

// stillOwes tells that an instance was at work when the job succeeded and had something to leave then.
func (a *agent) stillOwes(st consul.Status, in registry.Instance) bool {
	c := a.app.Component(in.Component)
	if c == nil || !endsWithJob(string(c.Settings.Role)) || st.Verdict == nil || st.Verdict.Outcome != registry.Succeeded {
		return false
	}
	return slices.ContainsFunc(st.Members, func(m consul.MemberStatus) bool {
		return m.Instance == in && m.Run == a.id.run && m.Phase == registry.PhaseReady
	})
}

func (a *agent) leavesFailed(in registry.Instance) bool {
	c := a.app.Component(in.Component)
	return c != nil && c.Settings.Outputs.Failed
}

// goneAgent is how long an agent that was launched again waits for the proof that the one before it is gone: a little more
// than its session lives.
const goneAgent = 40 * time.Second

// afterVerdict completes what agents that were killed after the verdict of the run have left undone: the agent that is
// launched again in the place of one finds the verdict. Without an index it does so for whoever is gone.
func (r gangRoom) afterVerdict(ctx context.Context, refusal error) {
	over, ok := errors.AsType[*conductor.FinishedError](refusal)
	if !ok || over.Verdict.Run != r.id.run || !slices.ContainsFunc(r.app.Components, leavesSomething) {
		return
	}
	st, err := r.gone(ctx)
	if err != nil {
		r.log.Warn("outputs of the run are left to its other agents", "err", err)
		return
	}
	r.mu.Lock()
	r.founded = st.App.Created
	r.mu.Unlock()
	for _, in := range r.leavers() {
		if err := r.completeOutputs(ctx, in, st, over.Verdict); err != nil {
			r.unsettled(fmt.Errorf("outputs of %s: %w", in, err), &over.Verdict)
		}
	}
}

func leavesSomething(c appdef.Component) bool {
	return c.Instances > 0 && len(c.Settings.Outputs.To) > 0
}

// leavers are the instances to complete: this agent's, or all those that leave something.
func (r gangRoom) leavers() []registry.Instance {
	if r.id.instance != nil {
		return []registry.Instance{*r.id.instance}
	}
	var all []registry.Instance
	for _, c := range r.app.Components {
		for i := range c.Instances {
			only := c.Settings.Outputs.Only
			if leavesSomething(c) && (only == nil || *only == i) {
				all = append(all, registry.Instance{Component: c.Name, Index: i})
			}
		}
	}
	return all
}

// completeOutputs does what the former agent of an instance would have done.
func (r gangRoom) completeOutputs(ctx context.Context, in registry.Instance, st consul.Status, v registry.Verdict) error {
	c := r.app.Component(in.Component)
	if c == nil || !leavesSomething(*c) {
		return nil
	}
	p, err := r.planAgain(ctx, in)
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
		leave, err := r.leaveOf(ctx, p, one)
		if err != nil {
			return err
		}
		o := owedOutput{one.Name, leave}
		open, err := o.Open(ctx)
		if err == nil && slices.Contains(open, o.Folder) {
			err = r.completeOutput(ctx, o, p, in, st, v)
		}
		if err == nil {
			err = r.conclude(ctx, o, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r gangRoom) completeOutput(ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance, st consul.Status, v registry.Verdict) error {
	if v.Outcome == registry.Succeeded && r.stillOwes(st, in) {
		err := r.leaveLate(ctx, o, p, in)
		if err != nil && r.id.instance == nil {
			return nil //nolint:nilerr // it is another's, on another host
		}
		if err != nil {
			return errors.Join(fmt.Errorf("what it had made is not left: %w", err), o.Owe(ctx))
		}
	}
	if isOwed, err := o.Owed(ctx); isOwed || err != nil {
		return err
	}
	return r.persist(ctx, func(ctx context.Context) error { return r.settleFor(ctx, o, v, p.Outputs.Failed) })
}

// planAgain plans for an instance that will not start.
func (r gangRoom) planAgain(ctx context.Context, in registry.Instance) (plan.Plan, error) {
	room, request := stageRoom(r), r.request(in)
	p, err := room.build(request)
	if err == nil && p.Root.Kind == plan.RootImage {
		request.Image, err = room.pullImage(ctx, p)
	}
	if err == nil {
		request.User, err = r.lookUpUser(p)
	}
	if err != nil {
		return p, err
	}
	r.user = request.User
	return plan.Resolve(p, plan.Dirs{Work: r.workDir, Log: r.logDir}), nil
}

// gone waits for the proof that no agent is at work whose outputs this one would complete.
func (r gangRoom) gone(ctx context.Context) (st consul.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, goneAgent)
	defer cancel()
	wait.Until(ctx, func() bool {
		if st, err = r.client.Status(ctx, r.id.appID); err != nil {
			return false
		}
		i := slices.IndexFunc(st.Members, func(m consul.MemberStatus) bool {
			return m.Live && (r.id.instance == nil || m.Instance == *r.id.instance)
		})
		if i < 0 {
			return true
		}
		dead, _ := member.Dead(st.Members[i].Member)
		if dead = dead && r.id.instance != nil; !dead {
			err = fmt.Errorf("the agent of %s still holds its index", st.Members[i].Instance)
		}
		return dead
	})
	return st, err
}

// leaveLate copies what an instance of this host had made when its agent was killed after the verdict.
func (r gangRoom) leaveLate(ctx context.Context, o owedOutput, p plan.Plan, in registry.Instance) (err error) {
	work, err := files.As(nil).Below(r.workDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	owner, err := work.ReadFile(outputsMark(in))
	if err != nil || string(owner) != r.outputsOwner() {
		return errors.New("its folders are not on this host")
	}
	for _, one := range p.Outputs.To {
		if one.Name == o.name {
			_, err = r.leaveOutput(ctx, p, one, work)
		}
	}
	return err
}
