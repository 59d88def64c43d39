package prepare

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// layProgram leaves muster itself where mpirun finds it: in an image that has nothing of ours, and for a user who may
// not read the folder that this program lies in. It is a copy, so that nothing that is done to it is done to the
// host's.
func layProgram(ctx context.Context, work files.Folder, p plan.Plan) error {
	if p.MPI == nil {
		return nil
	}
	if strings.ContainsAny(p.Process.Folder, " \t\n:") {
		return fault.Definition(fmt.Errorf("the work folder is %q, want a path without blanks and colons, at which "+
			"mpirun would split it: --work-dir", work.Name()))
	}
	if !p.MPI.Launches {
		return nil
	}
	return stageItem(ctx, work, plan.StageItem{
		Name: "muster", Kind: plan.StageFile, From: "/proc/self/exe",
		To: filepath.Join(p.Process.Folder, plan.MPIProgram),
	})
}
