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

// layProgram puts a copy of muster where mpirun and the ssh server find it: for an image, which does not have it, and
// for a user who may not read the folder of this program. A change of the copy does not change the host's.
func layProgram(ctx context.Context, work files.Folder, folder files.UserFolder, p plan.Plan) error {
	if p.MPI != nil && strings.ContainsAny(p.Process.Folder, " \t\n:") {
		return fault.Definition(fmt.Errorf("the work folder is %q, want a path without blanks and colons, at which "+
			"mpirun would split it: --work-dir", work.Name()))
	}
	if p.Login == nil && (p.MPI == nil || !p.MPI.Launches) {
		return nil
	}
	return stageItem(ctx, work, folder, plan.StageItem{
		Name: "muster", Kind: plan.StageFile, From: "/proc/self/exe",
		To: filepath.Join(p.Process.Folder, plan.Program),
	})
}
