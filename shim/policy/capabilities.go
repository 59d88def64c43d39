package policy

import (
	"fmt"
	"strings"

	"github.com/moby/sys/capability"

	"github.com/muster-agent/muster/appdef"
)

// capabilityRules is what the policy says of a root's capabilities (capabilities(7)).
type capabilityRules struct {
	// Add are those beyond the default set, by name: NET_RAW, CAP_NET_RAW.
	Add []string `json:"add"`

	// Added are Add, as 1 << CAP_*.
	Added uint64 `json:"-"`
}

func (c *capabilityRules) check(s *source) {
	byName := map[string]capability.Cap{}
	var known []string
	for _, each := range capability.ListKnown() {
		name := strings.ToUpper(each.String())
		byName[name], known = each, append(known, name)
	}
	for i, name := range c.Add {
		found, ok := byName[strings.TrimPrefix(name, "CAP_")]
		if !ok {
			s.bad(fmt.Sprintf("capabilities.add[%d]", i), "no capability is called %q, want %s%s", name,
				appdef.OneOf(known, ""), also(appdef.DidYouMean(strings.TrimPrefix(name, "CAP_"), known)))
			continue
		}
		c.Added |= 1 << found
	}
}
