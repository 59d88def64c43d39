package prepare

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/folder"
)

// hostile is a work folder in which an earlier process has put links to a folder of the host's.
func hostile(t *testing.T) (w files.Folder, outside string) {
	t.Helper()
	dir, outside := folder.Hostile(t)
	w, err := files.Below(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, outside
}

// stage stages an item into the folder of the instance w-0.
func stage(t *testing.T, w files.Folder, item plan.StageItem) error {
	t.Helper()
	root, err := w.Make(filepath.Join(w.Name(), "w-0"))
	if err != nil {
		t.Fatal(err)
	}
	in := files.As(nil).In(root)
	defer in.Close()
	return stageItem(t.Context(), w, in, item)
}

func TestStageFollowsNoLink(t *testing.T) {
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "run.sh"), []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		link    string
		refused bool
	}{
		"in the place of the folder": {"w-0/app/install", false},
		"above it":                   {"w-0/app", true},
		"what a killed agent left":   {".stage-w-0", false},
	} {
		for _, kind := range []string{plan.StageFolder, plan.StagePackage} {
			t.Run(name+", "+kind, func(t *testing.T) {
				w, outside := hostile(t)
				folder.Plant(t, w.Name(), tt.link, outside)
				to := filepath.Join(w.Name(), "w-0", "app", "install")
				err := stage(t, w, plan.StageItem{Kind: kind, From: from, To: to})
				if (err != nil) != tt.refused {
					t.Fatalf("got %v, want refused: %v", err, tt.refused)
				}
				if _, err := os.Stat(filepath.Join(to, "run.sh")); (err != nil) != tt.refused {
					t.Errorf("what was staged: %v", err)
				}
				folder.Untouched(t, outside)
			})
		}
	}
}

// A process owns its instance's folder and turns the link to the package while an agent lays out the package's items.
func TestAttackStageThroughATurnedLink(t *testing.T) {
	const secret = "root's alone"
	for kind, name := range map[string]string{plan.StageFolder: "files", plan.StageFile: "files/run.sh"} {
		t.Run(kind, func(t *testing.T) {
			w, outside := hostile(t)
			ours, theirs := filepath.Join(w.Name(), "package", "package", "files"), filepath.Join(outside, "package", "files")
			to := filepath.Join(w.Name(), "w-0", "app")
			for dir, text := range map[string]string{ours: "#!", theirs: secret} {
				err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "run.sh"), []byte(text), 0o600))
				if err != nil {
					t.Fatal(err)
				}
			}
			folder.Plant(t, w.Name(), "w-0/app/definition", outside)
			item := plan.StageItem{Kind: kind, From: filepath.Join(to, "definition", "package", name), To: filepath.Join(to, "install")}
			if err := stage(t, w, item); err != nil {
				t.Fatal(err)
			}
			read := filepath.Join(to, "install")
			if kind == plan.StageFolder {
				read = filepath.Join(read, "run.sh")
			}
			if text, err := os.ReadFile(read); string(text) != "#!" || err != nil {
				t.Errorf("the process got %q, %v; want the package's file", text, err)
			}
		})
	}
}

// What was there is replaced whole, and nothing is left beside it.
func TestStageReplaces(t *testing.T) {
	w, _ := hostile(t)
	from, to := t.TempDir(), filepath.Join(w.Name(), "w-0", "app", "install")
	for _, dir := range []string{filepath.Join(from, "new"), filepath.Join(to, "old")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := stage(t, w, plan.StageItem{Kind: plan.StageFolder, From: from, To: to}); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{to: "new", w.Name(): "w-0"} {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != want {
			t.Errorf("in %s are %v, %v; want %s", dir, entries, err, want)
		}
	}
	if err := stage(t, w, plan.StageItem{Kind: plan.StageFolder, From: filepath.Join(from, "none"), To: to}); err == nil {
		t.Error("a folder that is not there: got no error")
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("after a failure: %v, %v", info, err)
	}
}
