package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// hbox tells a process what HBox's container would, beyond what its framework does.
func hbox(_ plan.Plan, _ registry.Roster) (env, files map[string]string) { return none() }
