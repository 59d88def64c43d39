package member

import (
	"context"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/launcher/route"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// DetectLauncher asks the variables of this process which launcher has started it, unless the name of one overrules
// them.
func DetectLauncher(name string, environ map[string]string) (launcher.Found, error) {
	facts := hostFacts()
	switch name {
	case "":
		return known.Detect(environ, facts), nil
	case string(launcher.Shell):
		envelope := known.Detect(environ, facts).Allocation.Envelope
		return known.Detect(map[string]string{}, launcher.Facts{User: facts.User, Envelope: envelope}), nil
	}
	return launcher.Found{}, exit.Usagef("--launcher %q: want shell, or nothing for the one that is recognised", name)
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
	if self, err := proc.SelfFacts(); err == nil {
		facts.Machine = self.Machine
	}
	if tree, err := cgroup.Discover(cgroup.Host{}); err == nil { // without one no limit can be seen
		facts.Envelope.MemoryMB, facts.Envelope.VCores = tree.Envelope()
	}
	if nodes, err := gpu.NodesInventory("/"); err == nil { // who asks for GPUs is told of the error
		facts.GPUs = map[string]bool{}
		for _, d := range nodes.Devices {
			facts.GPUs["/dev/nvidia"+strconv.Itoa(d.Minor)] = !d.Closed
		}
	}
	return facts
}

// Surroundings are what the launcher of this environment granted, and the address that an agent would publish. Which
// registry it would ask for the route to it is known to agents only.
func Surroundings(ctx context.Context) (launcher.Found, launcher.Host) {
	found := known.Detect(launcher.Environ(os.Environ()), hostFacts())
	host, err := launcher.ChooseHost(hostChoices(ctx, found))
	if err != nil {
		host.Origin = "nobody: --host"
	}
	return found, host
}

// HostQuestion is asked for the address that this host's exports have.
type HostQuestion struct {
	Flag     string // --host
	Registry registry.Address
	Client   *consul.Client
	Found    launcher.Found
}

// ChooseHost chooses the address under which the gang reaches this host. Origin says where it came from.
func ChooseHost(ctx context.Context, q HostQuestion, log *slog.Logger) (launcher.Host, error) {
	choices := hostChoices(ctx, q.Found)
	choices.Flag, choices.Loopback = q.Flag, onThisMachine(q.Registry)
	if address, ok := q.Registry.HostPort(); ok {
		choices.Source, _ = route.Source(address) // then another source is taken
		choices.ConsulAgent = consulAgent(ctx, q.Client)
	}
	host, err := launcher.ChooseHost(choices)
	if err != nil && isLoopback(choices.Source) { // no network at all: the whole gang is on this machine
		host.Address, host.Origin, err = "127.0.0.1", "registry on the loopback, and no other address", nil
		log.Warn("no address but the loopback: agents on other hosts cannot be peers")
	}
	if err != nil {
		return host, exit.With(exit.Usage, err)
	}
	if host.Passed != "" {
		log.Warn("launcher's name of this host not used",
			"why", host.Passed, "host", host.Address, "from", host.Origin)
		host.Origin += ": " + host.Passed
	}
	return host, nil
}

// hostChoices are what the launcher and this host's routes say of its address.
func hostChoices(ctx context.Context, found launcher.Found) launcher.HostChoices {
	c := launcher.HostChoices{
		Launcher: found.Allocation.Host, LauncherFrom: found.Origins["host"], DefaultRoute: route.Default(),
	}
	if c.Launcher != "" {
		c.LauncherIs = route.Lookup(ctx, c.Launcher)
	}
	return c
}

// agentPatience bounds the question to a node-local Consul agent.
const agentPatience = 2 * time.Second

// consulAgent is the advertised address of a node-local Consul agent; empty if it does not say.
func consulAgent(ctx context.Context, client *consul.Client) string {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	addr, err := client.AgentAddress(ctx)
	if err != nil {
		return ""
	}
	return addr
}
