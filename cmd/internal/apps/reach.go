package apps

import (
	"cmp"
	"fmt"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// mostNamed is how many instances a message names.
const mostNamed = 20

// HostOf is the host of a member's agent, as a message names it.
func HostOf(m consul.MemberStatus) string { return cmp.Or(m.Addr, m.Host) }

// NoInstance is why nothing is known of an instance that has no member in the registry: the app has no such instance,
// or its agent has not joined.
func (f *Facts) NoInstance(in registry.Instance) error {
	if in.Index < f.Registry.App.Counts[in.Component] {
		return fmt.Errorf("%s/%s has no agent yet: muster status %[1]s says how it stands", f.ID, in)
	}
	var names []string
	for _, m := range f.Registry.Members {
		names = append(names, m.Instance.String())
	}
	return exit.Usagef("%s has no instance %s; it has: %s", f.ID, in, cmp.Or(wording.First(names, mostNamed), "none"))
}

// OwnHostOnly is why a member's agent cannot be asked from other hosts.
func (f *Facts) OwnHostOnly(m consul.MemberStatus) error {
	return exit.Usagef("the agent of %s/%s answers on its own host only, %s", f.ID, m.Instance, HostOf(m))
}

// Failed is the error of an act that the target's agent was asked for. An agent that cannot be reached is named with
// its host in place of the address and the route that were tried.
func (t Target) Failed(act string, err error) error {
	if why := status.Unreached(err); why != nil {
		return fmt.Errorf("%s %s/%s: its agent on %s does not answer (%w): muster status %[2]s says how it stands", act,
			t.App, t.Instance, cmp.Or(t.host, "this host"), why)
	}
	return fmt.Errorf("%s %s/%s: %w", act, t.App, t.Instance, err)
}
