package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// pai tells a task of a PAI job what PAI would.
func pai(_ plan.Plan, _ registry.Roster) (env, files map[string]string) { return none() }
