// Package frameworks tells a process of its cluster in the words of its framework: from a plan and
// a roster to variables and files. One file per framework; everything is pure.
package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// The frameworks, as plan.Plan.Framework names them.
const (
	TensorFlow = "tensorflow"
	None       = "none"
)

// Env gives the variables and the files (by path under the instance's folder) that the plan's
// framework expects of this roster. It is a plan.Framework. A framework that is not known here gets
// what every process gets: plan.Finish adds that.
func Env(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	switch p.Framework {
	case TensorFlow:
		return tensorflow(p, r)
	default:
		return none()
	}
}
