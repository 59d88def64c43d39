package prepare

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

// A definition names a folder of others as its checkpoint folder, in one that the operator admits. The agent takes the
// set-user-ID bit from what the process has left there, and from nobody else's programs.
func TestAttackDisarmsProgramsOfOthers(t *testing.T) {
	need.Root(t)
	top, in := t.TempDir(), registry.Instance{Component: "w", Index: 0}
	c := New(Config{
		WorkDir: filepath.Join(top, "work"), LogDir: filepath.Join(top, "log"),
		Policy: policy.Policy{Roots: []policy.Root{{Path: filepath.Join(top, "shared")}}},
	})
	c.setUser(&plan.UserFacts{UID: 64001, GID: 64001})
	p := plan.Plan{Process: plan.Process{Folder: filepath.Join(top, "work", "w-0")}}
	p.Root.Kind, p.Checkpoint.Dir = plan.RootHost, filepath.Join(top, "shared", "bin")
	for _, dir := range []string{p.Process.Folder, filepath.Join(c.LogDir, in.String()), p.Checkpoint.Dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]os.FileMode{}
	for name, uid := range map[string]int{"roots": 0, "others": 64002, "own": 64001} {
		path := filepath.Join(p.Checkpoint.Dir, name)
		if want[path] = 0o755; uid != 64001 {
			want[path] |= os.ModeSetuid
		}
		if err := errors.Join(os.WriteFile(path, nil, 0o755), os.Lchown(path, uid, uid), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.disarm(p, in); err != nil {
		t.Fatal(err)
	}
	for path, mode := range want {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
}
