package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
)

// consulAgent is the advertised address of a node-local Consul agent; empty if it does not say.
func (a *agent) consulAgent() string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	addr, err := a.client.AgentAddress(ctx)
	if err != nil {
		return ""
	}
	return addr
}

// reachRegistry is patient with a registry that starts together with its gang.
func (a *agent) reachRegistry() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	var last error // the end of our own patience is no cause
	for {
		err := a.client.Ping(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return exit.With(exit.Registry, fmt.Errorf("registry %s: %w; %s", a.registryAddr, cmp.Or(last, err), registryRemedy))
		case !errors.Is(err, registry.ErrUnreachable):
			return exit.With(exit.Registry, fmt.Errorf("registry %s: %w", a.registryAddr, err))
		case last == nil:
			a.log.Warn("registry does not answer yet, trying on", "registry", a.registryAddr, "patience", startPatience, "err", err)
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(startPoll):
		}
	}
}

// request is the plan's question for an instance.
func (a *agent) request(in registry.Instance) plan.Request {
	request := plan.Request{
		AppID: a.id.appID, Run: a.id.run, Starts: true, Digest: a.digest, Component: in.Component, Index: in.Index,
		Allocation: a.alloc, Origins: a.origins, Engine: engineChoice(a.engine), Instances: a.countsInForce(),
		HostFacts: plan.HostFacts{Inherited: a.env, Given: a.envGiven, Shell: shell(), Hadoop: a.hadoopFound},
	}
	request.Domain, request.NoDNS = a.domain, a.noDNS
	a.filesystem.Into(&request)
	return request
}

// me is what the agent says of itself when it joins.
func (a *agent) me() (conductor.Newcomer, error) {
	request := a.request(registry.Instance{})
	facts := plan.Gang(a.app.App, request)
	facts.Times, facts.Barrier = a.times, a.times.Barrier
	def, err := appdef.Encode(a.app.App)
	if err != nil {
		return conductor.Newcomer{}, err
	}
	hostname, _ := os.Hostname() // for display
	now := stamp(time.Now())
	me := conductor.Newcomer{
		App: a.id.appID, Run: a.id.run, NewRun: a.newRun, Digest: a.digest, Facts: facts,
		Launcher: launcher.Name(a.alloc.Launcher).Relaunches(), Instance: a.id.instance,
		Record: registry.AppRecord{Version: 1, Run: a.id.run, Digest: a.digest, Def: def, Counts: a.app.Counts(), Created: now, By: a.inc, Token: newToken()},
		Member: registry.Member{
			Version: 1, Run: a.id.run, Inc: a.inc, Addr: a.alloc.Host, Host: hostname,
			Machine: a.facts.Machine, Boot: a.facts.Boot, PidNS: a.facts.PidNS, Pid: a.facts.PID, Start: a.facts.Start,
			Digest: a.digest, Launcher: a.alloc.Launcher, ContainerID: a.alloc.ContainerID, Slot: a.id.found.Slot, Since: now,
		},
	}
	if me.Instance != nil {
		return me, nil
	}
	for _, in := range plan.Instances(&a.app.App) {
		if a.id.component == "" || in.Component == a.id.component {
			me.Claimable = append(me.Claimable, in)
		}
	}
	if a.id.rank >= 0 && a.id.rank < len(me.Claimable) && a.id.component == "" {
		me.Instance = &me.Claimable[a.id.rank] // Slurm's PROCID is the rank
	}
	return me, nil
}

// alive tells whether a holder on this host still lives.
func (a *agent) alive(m registry.Member) (gone bool, why string) {
	live, err := sandbox.Host{}.Alive(sandbox.Facts{Machine: m.Machine, Boot: m.Boot, PidNS: m.PidNS, PID: m.Pid, Start: m.Start})
	if err != nil {
		return false, err.Error()
	}
	return live == sandbox.Dead, live.String()
}

// clean kills what a dead agent of this index left on this host. Its work folder may have been another than this agent's: YARN and
// others give each container its own.
func (a *agent) clean(ctx context.Context, in registry.Instance, m registry.Member) error {
	left := sandbox.Leftover{Boot: m.Boot, PidNS: m.PidNS}
	left.Env = map[string]string{ // finds also what left the tree
		"MUSTER_APP_ID": a.id.appID, "MUSTER_INSTANCE": in.String(), "MUSTER_WORK_DIR": cmp.Or(m.WorkDir, filepath.Join(a.workDir, in.String())),
	}
	if m.Guard != nil {
		left.Guard = sandbox.ProcessID{PID: m.Guard.Pid, Start: m.Guard.Start}
	}
	err := sandbox.Host{}.KillOrphans(ctx, left)
	if err != nil {
		a.log.Warn("clear what the last agent left", "pid", m.Pid, "err", err)
	}
	a.clearDead(ctx) // it has died since this agent looked
	return err
}

// answers asks the holder's agent: by its socket on this host, else where it listens for its peers.
func (a *agent) answers(ctx context.Context, m registry.Member, token string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	is := func(c *status.Client) bool {
		defer c.Close()
		st, err := c.State(ctx)
		return err == nil && st.Inc == m.Inc
	}
	return m.Machine == a.facts.Machine && m.API != "" && is(status.Dial(m.API)) || m.Peer != "" && is(status.DialPeer(m.Peer, token))
}
