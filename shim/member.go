package shim

import (
	"context"
	"maps"
	"strings"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/member"
)

// memberConfig is what this agent's membership is made of.
func (a *agent) memberConfig(newRun bool, build string, listen member.Listen) member.Config {
	return member.Config{
		App: a.app.App, AppID: a.id.appID, Run: a.id.run, NewRun: newRun, Digest: a.digest, Inc: a.inc,
		Build: build,
		Claim: member.Claim{Instance: a.id.instance, Component: a.id.component, Rank: a.id.rank, Slot: a.id.found.Slot},
		Host:  member.Host{Self: a.facts, Allocation: a.alloc}, Registry: a.registryAddr, Client: a.client,
		Times: a.times,
		State: a.state, WorkDir: a.workDir, Listen: listen, Loop: a.loop, Log: a.log,
		Hooks: member.Hooks{
			Container: a.published, Request: a.request, ClearDead: a.clearDead,
			KillLeft: a.killLeft,
			Here:     a.checkpoints.Here, Resume: a.checkpoints.Resume, Save: a.data.SaveAsked,
			Settle: a.data.Settle, Conclude: a.data.Conclude, AfterVerdict: a.data.AfterVerdict,
			Warn: a.journal.Warn, Mended: a.journal.Mended, Changed: a.notify.Changed,
		},
	}
}

// published is this instance's container as the membership publishes it.
func (a *agent) published() member.Container {
	process := a.runs()
	a.mu.Lock()
	defer a.mu.Unlock()
	c := member.Container{Plan: a.plan, Ports: a.ports.Numbers(), Guard: process.Guard()}
	if a.publisher != "" {
		c.Logs = a.instanceLogs()
	}
	if a.plan.Login != nil && !a.host.policy.PermitsSSH() {
		delete(c.Ports, a.plan.Login.Port)
	}
	return c
}

// allocate completes what the launcher granted: host, kill window, client variables.
func (a *agent) allocate(ctx context.Context, o Options, found launcher.Found) error {
	a.alloc, a.origins = found.Allocation, found.Origins
	if a.origins == nil {
		a.origins = map[string]string{}
	}
	for _, note := range found.Notes {
		a.log.Warn("launcher's variables not used", "name", a.alloc.Launcher, "note", note)
	}
	question := member.HostQuestion{Flag: o.Host, Registry: a.registryAddr, Client: a.client, Found: found}
	host, err := member.ChooseHost(ctx, question, a.log)
	if err != nil {
		return err
	}
	a.alloc.Host, a.origins["host"] = host.Address, host.Origin
	for flag, value := range map[string]string{"component": o.Name.Component, "app_id": o.Name.AppID} {
		if value != "" {
			a.origins[flag] = "--" + strings.ReplaceAll(flag, "_", "-")
		}
	}
	switch {
	case o.Name.Index >= 0:
		a.origins["index"] = "--index"
	case a.id.instance == nil:
		a.origins["index"] = "claimed"
	}
	if o.KillWindow > 0 {
		a.alloc.KillWindow = o.KillWindow.Seconds()
		a.origins["kill_window"] = "--kill-window"
	}
	if a.alloc.Vars == nil {
		a.alloc.Vars = map[string]string{}
	}
	maps.Copy(a.alloc.Vars, a.app.ClientVars())
	return nil
}
