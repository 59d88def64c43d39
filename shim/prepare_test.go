package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/tests/need"
)

// A launcher makes its folders for nobody, open to all, as Nomad does. Another user lays a link where the agent, which
// is root, makes its log folder.
func TestAttackFoldersOfALauncher(t *testing.T) {
	need.Root(t)
	for name, tt := range map[string]struct {
		logs bool
		link string // in the launcher's folder; "": none
	}{
		"log folder": {true, "muster"}, "work folder": {false, "log"}, "neither": {true, ""},
		"package": {false, "package"}, "containers": {false, "root"},
	} {
		t.Run(name, func(t *testing.T) {
			work, logs, victim := t.TempDir(), t.TempDir(), t.TempDir()
			found := launcher.Found{WorkDir: work}
			a := &agent{folders: folders{workDir: work, logDir: filepath.Join(work, "log")}}
			in := work
			if tt.logs {
				found.LogDir, a.logDir, in = logs, filepath.Join(logs, "muster"), logs
			}
			uid := 64001
			if tt.logs {
				uid = 0
			}
			err := errors.Join(os.Chown(in, 65534, 65534), os.Chmod(in, 0o777), os.Chown(victim, uid, uid))
			if tt.link != "" {
				err = errors.Join(err, os.Symlink(victim, filepath.Join(in, tt.link)))
			}
			if err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(victim)
			if err != nil {
				t.Fatal(err)
			}
			err = a.safeFolders(Folders{}, found)
			if tt.link == "" && err != nil || tt.link != "" && (err == nil || !strings.Contains(err.Error(), "is a link")) {
				t.Errorf("got %v", err)
			}
			after, err := os.Stat(victim)
			if err != nil {
				t.Fatal(err)
			}
			if was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t); was.Uid != is.Uid {
				t.Errorf("the link's target belonged to uid %d, now to %d", was.Uid, is.Uid)
			}
			if info, err := os.Stat(in); err != nil || info.Mode().Perm()&0o022 != 0 {
				t.Errorf("the launcher's folder: got %v, %v, want nobody else to write to it", info.Mode(), err)
			}
		})
	}
}

// Kubernetes makes the empty folder of a pod root's and writable by all. The agent is root and is told to work in it.
func TestFoldersInVolume(t *testing.T) {
	need.Root(t)
	volume := t.TempDir()
	if err := os.Chmod(volume, 0o777); err != nil { //nolint:gosec // as Kubernetes does
		t.Fatal(err)
	}
	work := filepath.Join(volume, "app")
	a := &agent{folders: folders{workDir: work, logDir: filepath.Join(work, "log")}}
	if err := a.safeFolders(Folders{Work: work}, launcher.Found{Volume: volume}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(volume); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the volume: got %v, %v, want nobody else to write to it", info.Mode(), err)
	}
}
