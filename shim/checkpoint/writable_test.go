package checkpoint

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// A folder that the agent may not write to in the process's name is let be where the process is root of the folder's
// owner, and where no right is lacking.
func TestFolderOfAnotherUserOfTheNamespace(t *testing.T) {
	need.Root(t)
	const uid = 64001
	for name, tc := range map[string]struct {
		owner     int
		overrides bool
		refused   bool
	}{
		"its own":              {uid, false, false},
		"another's":            {uid + 1, false, true},
		"one of its namespace": {uid + 1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder.Temp(t, "mk-")
			if err := os.Chown(dir, tc.owner, tc.owner); err != nil {
				t.Fatal(err)
			}
			owner := &plan.UserFacts{UID: uid, GID: uid}
			asked := -1
			m := New(t.Context(), Config{
				Owner: func() *plan.UserFacts { return owner },
				Folder: func(_ plan.Plan, dir string) (files.UserFolder, error) {
					return files.Admission{
						Work: t.TempDir(), User: files.As(owner), Policy: policy.Policy{Roots: []policy.Root{{Path: dir}}},
					}.Folder(dir)
				},
				Overrides: func(_ plan.Plan, uid int) bool { asked = uid; return tc.overrides },
			})
			p := plan.Plan{Root: plan.Root{Kind: plan.RootHost}, Checkpoint: plan.Checkpoint{Dir: dir}}
			err := m.Prepare(t.Context(), p, registry.Instance{})
			if fault.Is(err, registry.ClassNotPermitted) != tc.refused || (err != nil) != tc.refused {
				t.Errorf("got %v, refused: want %v", err, tc.refused)
			}
			if tc.refused && !strings.Contains(err.Error(), "belongs to uid 64002 and gid 64002") || asked > 0 && asked != tc.owner && asked != uid {
				t.Errorf("got %v, asked of uid %d", err, asked)
			}
		})
	}
}
