package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/need"
)

// A process nests folders. With the whole path of each, 2,000 would take its agent a minute, and 30,000 the host's
// memory.
func TestAttackDeepFolders(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	at, err := unix.Open(top, unix.O_PATH, 0)
	for n := 0; n < 2000 && err == nil; n++ {
		name := strings.Repeat("d", 200)
		if err = unix.Mkdirat(at, name, 0o755); err == nil {
			next, openErr := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
			err = errors.Join(openErr, unix.Close(at))
			at = next
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	root, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(Disarm(root, nil), As(&plan.UserFacts{UID: 4242, GID: 4242}).OwnAll(root)); err != nil {
		t.Error(err)
	}
	deep := strings.Repeat(strings.Repeat("d", 200)+"/", deepest)
	for name, want := range map[string]fs.FileMode{filepath.Dir(filepath.Clean(deep)): 0o755, deep + strings.Repeat("d", 200): 0o700} {
		if info, err := root.Lstat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("folder %d: %v, want mode %s", strings.Count(name, "/"), fmt.Sprint(info, err)[:40], want)
		}
	}
}
