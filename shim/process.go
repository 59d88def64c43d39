package shim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/process"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/wording"
)

// begin makes the process of the instance that has been prepared.
func (r stageRoom) begin(ctx context.Context, p plan.Plan, in registry.Instance) {
	ssh := &sshServer{sshConfig: sshConfig{
		plan: p, app: r.id.appID, run: r.id.run, instance: in, host: r.alloc.Host, policy: r.host.policy,
		token: func() string { return r.member.Membership().Token() }, client: r.client, ports: r.ports,
		user: files.As(r.container.Owner()), journal: r.journal, hide: r.hidden.Hide, log: r.log,
	}}
	made := process.New(ctx, process.Config{
		Log: r.log, Secret: r.hidden.AddAll, Hide: r.hidden.Hide,
		SecretFiles: func(values map[string]string) (string, error) {
			return r.container.WriteSecrets(p, values)
		}, Loop: r.loop, Instance: in, Plan: p, LogDir: filepath.Join(r.logDir, in.String()), Ports: r.ports,
		Reach: process.Reach{
			Host: r.alloc.Host, Socket: r.state.Socket(r.id.appID, in.String()),
			Publisher: r.publisherURL(),
		},
		Park:    func(ctx context.Context) (*sandbox.Guard, error) { return r.park(ctx, p, in) },
		Started: r.notify.Started, Warn: r.journal.Warn, Mended: r.journal.Mended,
		Ended:   r.over,
		WorkDir: r.workDir, User: files.As(r.container.Owner()),
		Secrets: r.container.Secrets(p).Read,
		SideKey: func(side string) (string, error) {
			return gate.Key(r.member.Membership().Token(), r.id.appID, in.String(), side)
		},
		Login: ssh, Roster: r.member.Roster, Fence: r.member.Fence(), GPUs: r.gpus, Data: processData{r.agent, p},
		Checkpoints: processCheckpoints{r.checkpoints, r.agent},
	})
	ssh.exec = made.Exec
	r.mu.Lock()
	r.process, r.ssh = made, ssh
	r.mu.Unlock()
	r.atEnd(func() {
		if made.Close() {
			r.forget(in)
		}
	})
	r.atEnd(ssh.close)
}

// park starts the guard of this instance and records it for the next agent of this host.
func (a *agent) park(ctx context.Context, p plan.Plan, in registry.Instance) (*sandbox.Guard, error) {
	guard, err := a.container.StartGuard(ctx, p, in)
	if err != nil {
		return nil, err
	}
	if err := a.remember(in, guard); err != nil {
		return nil, errors.Join(err, guard.Close())
	}
	return guard, nil
}

// over takes the event of an attempt that has ended: its last checkpoint counts for its budget and its result.
func (a *agent) over(e machine.Event) {
	a.checkpoints.SeeLast(e.Exit)
	a.data.Ended(e, a.checkpoints.LastUpload(e.Exit))
}

// failData ends the process because of its data. An error that another attempt would meet again is final.
func (a *agent) failData(why string, err error) {
	process := a.runs()
	process.Condemn(cmp.Or(fault.ClassOf(err), registry.ClassData), wording.Short(why), !store.Transient(err))
	process.Kill()
}

// runs is the process; one that never runs until the instance has been prepared.
func (a *agent) runs() *process.Process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process
}

func (a *agent) instanceLogs() string {
	return filepath.Join(a.logDir, a.loop.State().Instance.String())
}

func (a *agent) instanceLogFolder() process.Logs {
	return process.Logs{Dir: a.instanceLogs(), Log: a.log}
}

func (a *agent) currentPlan() plan.Plan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan
}

// processData is the input and output of a process.
type processData struct {
	a    *agent
	plan plan.Plan
}

func (d processData) Inputs(start *plan.Start) { d.a.data.Inputs(start) }
func (d processData) CallOff(s machine.State)  { d.a.data.CallOff(s) }
func (d processData) Pipes() (process.Pipes, error) {
	pipes, err := d.a.data.Pipes(d.plan)
	if err != nil {
		return nil, err
	}
	return pipes, nil
}

// processCheckpoints is where a process resumes from.
type processCheckpoints struct {
	m *checkpoint.Manager
	a *agent
}

func (c processCheckpoints) NotReady() error  { return c.m.NotReady() }
func (c processCheckpoints) AsksToSave() bool { return c.m.AsksToSave() }

func (c processCheckpoints) AskToSave(grace time.Duration, over <-chan struct{}) bool {
	return c.m.AskToSave(grace, over)
}

func (c processCheckpoints) Resume(ctx context.Context, step *int64) (path string, at int64, ok bool) {
	newest, path, ok := c.m.Newest(ctx, step, true)
	c.a.resumes(newest.Step, path, ok)
	return path, newest.Step, ok
}

// resumes notes what the process that is started now resumes from.
func (a *agent) resumes(step int64, path string, ok bool) {
	a.mu.Lock()
	a.resumed = nil
	if ok {
		a.resumed = &step
	}
	a.mu.Unlock()
	if ok {
		a.journal.Event(journal.EventResumed, fmt.Sprintf("resumes from step %d (%s)", step, path), time.Now())
	}
}

// processRoom does the machine's effects on the process.
type processRoom struct{ a *agent }

func (r processRoom) Do(ctx context.Context, e machine.Effect, s machine.State) (machine.Event, bool) {
	return r.a.runs().Do(ctx, e, s)
}
