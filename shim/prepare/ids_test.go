package prepare

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/tests/need"
)

// Root of a user namespace may write what the users of its namespace own, and nobody else may do more than by its mode.
func TestOverrides(t *testing.T) {
	need.Root(t)
	const first = 0x7000_0000
	own := &ids{block: subids.Block{UID: first, GID: first}}
	user, root := &plan.UserFacts{UID: 1000}, &plan.UserFacts{}
	for name, tc := range map[string]struct {
		ids  *ids
		user *plan.UserFacts
		uid  int
		want bool
	}{
		"another user of the block":          {own, nil, first + 1000, true},
		"the same, root by name":             {own, root, first + 1000, true},
		"the same, for a user":               {own, user, first, false},
		"beyond the block":                   {own, nil, first + subids.BlockSize, false},
		"a user of the host":                 {own, nil, 0, false},
		"the host's root, as a server's":     {nil, nil, 0, false},
		"a user of the host with its own id": {nil, user, 1000, false},
	} {
		c := &Container{ids: tc.ids, user: tc.user}
		if got := c.Overrides(plan.Plan{Root: plan.Root{Kind: plan.RootHost}}, tc.uid); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// What an overlay over the host's root lacks is all told at once: a process that would be root there is refused as well.
func TestOverlayNeedsTheHostsIDs(t *testing.T) {
	if !MakesIDs(policy.Policy{}) {
		need.Skip(t, "is of an agent that is root of the host")
	}
	for user, root := range map[string]bool{"": true, "root": true, "0:0": true, "nobody": false} {
		p := plan.Plan{Root: plan.Root{Kind: plan.RootOverlay}, Process: plan.Process{User: user}}
		err := new(Container).takeIDs(p)
		if err == nil || !strings.Contains(err.Error(), `"userns": "host"`) || strings.Contains(err.Error(), `"refuse_root": false`) != root {
			t.Errorf("user %q: got %v, with refuse_root: want %v", user, err, root)
		}
	}
}
