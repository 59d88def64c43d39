package prepare

import (
	"fmt"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// checkMounts refuses mounts of the policy that this host does not have, and a checkpoint folder in one that is
// read-only.
func (c *Container) checkMounts(p plan.Plan) error {
	if p.Root.Kind == plan.RootHost {
		return nil
	}
	shown, dir := -1, p.Checkpoint.Dir
	for i, m := range c.Policy.Mounts {
		if !files.IsThere(m.Path) {
			return fault.NotPermitted(fmt.Errorf("mounts[%d] of %s: path %s is not on this host: let the operator "+
				"make or mount it, or take the entry out", i, c.Policy.File, m.Path))
		}
		if files.Within(dir, m.To) { // a later mount hides what an earlier one shows there
			shown = i
		}
	}
	if shown < 0 || !c.Policy.Mounts[shown].ReadOnly || files.Within(dir, c.WorkDir) {
		return nil
	}
	return fault.NotPermitted(fmt.Errorf("muster.checkpoint.dir: the process may not write to %s: mounts[%d] of %s is "+
		"read_only: name a folder that can be written, let the operator leave read_only out, or leave "+
		"muster.checkpoint.dir out to save in the work folder", dir, shown, c.Policy.File))
}
