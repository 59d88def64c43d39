package policy

import (
	"fmt"
	"slices"

	"github.com/muster-agent/muster/appdef"
)

// hostLimits are the limits of setrlimit(2) that hold something of the whole host: its processors, and the kernel's
// memory that no cgroup counts.
var hostLimits = []string{"msgqueue", "nice", "rtprio", "rttime", "sigpending"}

func (p Policy) checkUlimits(s *source) {
	for i, name := range p.Ulimits {
		if !slices.Contains(hostLimits, name) {
			s.bad(fmt.Sprintf("ulimits[%d]", i), "got %q, want %s: a definition may raise the others%s", name,
				appdef.OneOf(hostLimits, ""), also(appdef.DidYouMean(name, hostLimits)))
		}
	}
}

// MayRaise tells whether a definition may raise a limit with the rights of an agent that is root.
func (p Policy) MayRaise(name string) bool {
	return !slices.Contains(hostLimits, name) || slices.Contains(p.Ulimits, name)
}
