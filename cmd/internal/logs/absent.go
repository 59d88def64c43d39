package logs

import (
	"fmt"
	"slices"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// absent is why there are no logs of an instance in that folder of this host, nor from its agent.
func (l Reader) absent(instance, dir string) error {
	f := l.Facts
	m := l.member(instance)
	_, here := f.States[instance]
	switch in, err := registry.ParseInstance(instance); {
	case f.Registry == nil || here || err != nil:
		return exit.Usagef("no log of %s/%s on this host (%s); here are: %s", f.ID, instance, dir,
			wording.OrNone(l.names()))
	case m == nil:
		return f.NoInstance(in)
	case m.Live && f.Agent(instance) == nil:
		return fmt.Errorf("%w: muster logs %s/%s there", f.OwnHostOnly(*m), f.ID, instance)
	case m.Live:
		return l.noAnswer(instance, nil)
	case l.ended(*m):
		return exit.Usagef("%[1]s/%[2]s has ended; its logs are on its own host, %[3]s: muster logs %[1]s/%[2]s "+
			"there, or --history URL of a store that keeps logs", f.ID, instance, apps.HostOf(*m))
	}
	return fmt.Errorf("%[1]s/%[2]s has no agent any more; its logs are on its own host, %[3]s: "+
		"muster logs %[1]s/%[2]s there", f.ID, instance, apps.HostOf(*m))
}

// ended tells whether a member without an agent has come to its end, and not lost its agent in the run.
func (l Reader) ended(m consul.MemberStatus) bool {
	return l.Facts.Verdict() != nil || slices.Contains([]registry.Phase{
		registry.PhaseEnded, registry.PhaseFailed, registry.PhaseLeft,
	}, m.Phase)
}

// absentAll is absent of all instances of the app.
func (l Reader) absentAll() error {
	f := l.Facts
	if f.Registry == nil {
		return fmt.Errorf("no logs of %s on this host; its instances may run elsewhere: muster status %[1]s", f.ID)
	}
	_, silent := f.Elsewhere()
	var hosts []string
	for _, m := range f.Registry.Members {
		if host := apps.HostOf(m); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	where := wording.First(hosts, mostSilent)
	switch {
	case len(silent) > 0:
		return fmt.Errorf("%s: no answer from %s; what they wrote is there: muster logs %[1]s on these hosts, or "+
			"muster status %[1]s", f.ID, wording.First(silent, mostSilent))
	case len(hosts) == 0:
		return fmt.Errorf("%s has no agent yet: muster status %[1]s says how it stands", f.ID)
	case f.Verdict() != nil:
		return exit.Usagef("%[1]s has ended; its logs are on its own hosts, %[2]s: muster logs %[1]s there, or "+
			"--history URL of a store that keeps logs", f.ID, where)
	}
	return fmt.Errorf("%[1]s has no agent any more; its logs are on its own hosts, %[2]s: muster logs %[1]s there",
		f.ID, where)
}

// failed is the error of an agent that was asked for an instance's log.
func (l Reader) failed(instance string, err error) error {
	if why := status.Unreached(err); why != nil && l.member(instance) != nil {
		return l.noAnswer(instance, why)
	}
	return fmt.Errorf("%s/%s: %w", l.Facts.ID, instance, err)
}

// noAnswer is the silence of an instance's agent on another host; why is nil where it was not told.
func (l Reader) noAnswer(instance string, why error) error {
	reason := ""
	if why != nil {
		reason = " (" + why.Error() + ")"
	}
	return fmt.Errorf("%[1]s/%[2]s: its agent on %[3]s does not answer%[4]s; what it wrote is there: "+
		"muster logs %[1]s/%[2]s on that host, or muster status %[1]s", l.Facts.ID, instance,
		apps.HostOf(*l.member(instance)), reason)
}
