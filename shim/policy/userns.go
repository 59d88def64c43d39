package policy

import (
	"fmt"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
)

// The ways in which an agent that is root runs its process: with subordinate ids in a user namespace, or with the
// host's own.
const (
	usernsPrivate = "private"
	usernsHost    = "host"
)

// HostIDs tells whether the operator has chosen that a root agent's processes have the host's own ids.
func (p Policy) HostIDs() bool { return p.Userns == usernsHost }

// WithUserns is the policy with the --userns of the agent's command line. A policy that says private itself stays. The
// host's own ids include root's, unless the policy refuses root by name.
func (p Policy) WithUserns(userns string) (Policy, error) {
	switch {
	case userns == "":
		return p, nil
	case userns != usernsPrivate && userns != usernsHost:
		return p, exit.Usagef("--userns %q: want %s or %s", userns, usernsPrivate, usernsHost)
	case userns == usernsHost && p.Userns == usernsPrivate:
		return p, exit.With(exit.Forbidden, fmt.Errorf("--userns %s: policy %s says %s: take one of them out",
			userns, p.File, p.Userns))
	}
	p.Userns = userns
	if root := userns == usernsPrivate; p.RefuseRoot == nil {
		p.RefuseRoot = &root
	}
	return p, nil
}

// RefusesRoot tells whether a process that is root of the host, on the host's own root, is refused.
func (p Policy) RefusesRoot() bool { return p.RefuseRoot == nil || *p.RefuseRoot }

func (p Policy) checkUserns(s *source) {
	switch p.Userns {
	case "", usernsPrivate, usernsHost:
		return
	}
	s.bad("userns", "got %q, want %s or %s%s", p.Userns, usernsPrivate, usernsHost,
		also(appdef.DidYouMean(p.Userns, []string{usernsPrivate, usernsHost})))
}
