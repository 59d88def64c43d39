package main

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"os/user"
	"strings"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/launcher/route"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// detect asks the launcher's variables, unless --launcher overrules.
func (f *agentFlags) detect(environ map[string]string) (launcher.Found, error) {
	facts := hostFacts()
	switch f.launcher {
	case "":
		return known.Detect(environ, facts), nil
	case string(launcher.Shell):
		return known.Detect(map[string]string{}, launcher.Facts{User: facts.User, Envelope: known.Detect(environ, facts).Allocation.Envelope}), nil
	}
	return launcher.Found{}, exit.Usagef("--launcher %q: want shell, or nothing for the one that is recognised", f.launcher)
}

// hostFacts are what the variables do not say of where this process runs.
func hostFacts() launcher.Facts {
	facts := launcher.Facts{}
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		facts.Cgroup = string(text)
	}
	if u, err := user.Current(); err == nil {
		facts.User = u.Username
	}
	if self, err := sandbox.SelfFacts(); err == nil {
		facts.Machine = self.Machine
	}
	if tree, err := cgroup.Discover(cgroup.Host{}); err == nil { // without one there is no limit to be seen
		facts.Envelope.MemoryMB, facts.Envelope.VCores = tree.Envelope()
	}
	return facts
}

// allocate completes what the launcher granted: host, kill window, client variables.
func (a *agent) allocate(ctx context.Context, f *agentFlags, found launcher.Found) error {
	a.alloc, a.origins = found.Allocation, found.Origins
	if a.origins == nil {
		a.origins = map[string]string{}
	}
	for _, note := range found.Notes {
		a.log.Warn("launcher", "name", a.alloc.Launcher, "note", note)
	}
	if err := a.chooseHost(ctx, f.host, found); err != nil {
		return err
	}
	for flag, value := range map[string]string{"component": f.component, "app_id": f.appID} {
		if value != "" {
			a.origins[flag] = "--" + strings.ReplaceAll(flag, "_", "-")
		}
	}
	switch {
	case f.index >= 0:
		a.origins["index"] = "--index"
	case a.id.instance == nil:
		a.origins["index"] = "claimed"
	}
	if f.kill > 0 {
		a.alloc.KillWindow = f.kill.Seconds()
		a.origins["kill_window"] = "--kill-window"
	}
	if a.alloc.Vars == nil {
		a.alloc.Vars = map[string]string{}
	}
	maps.Copy(a.alloc.Vars, a.app.ClientVars())
	return nil
}

// chooseHost settles the address that this host's exports have.
func (a *agent) chooseHost(ctx context.Context, flag string, found launcher.Found) error {
	choices := hostChoices(ctx, found)
	choices.Flag, choices.Loopback = flag, strings.HasPrefix(a.registryAddr, "unix:")
	if _, address, ok := strings.Cut(a.registryAddr, "://"); ok {
		choices.Source, _ = route.Source(address) // then another source is taken
		choices.ConsulAgent = a.consulAgent()
	}
	host, err := launcher.ChooseHost(choices)
	if err != nil && loopback(choices.Source) { // no network at all: the whole gang is on this machine
		host.Address, host.Origin, err = "127.0.0.1", "registry on the loopback, and no other address", nil
		a.log.Warn("no address but the loopback: agents on other hosts cannot be peers")
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if host.Passed != "" {
		a.log.Warn("launcher's name of this host is not used", "why", host.Passed, "host", host.Address, "from", host.Origin)
		host.Origin += ": " + host.Passed
	}
	a.alloc.Host, a.origins["host"] = host.Address, host.Origin
	return nil
}

// hostChoices are what the launcher and this host's routes say of its address.
func hostChoices(ctx context.Context, found launcher.Found) launcher.HostChoices {
	c := launcher.HostChoices{Launcher: found.Allocation.Host, LauncherFrom: found.Origins["host"], DefaultRoute: route.Default()}
	if c.Launcher != "" {
		c.LauncherIs = route.Lookup(ctx, c.Launcher)
	}
	return c
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
