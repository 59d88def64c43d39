package container

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/tests/need"
)

// A filesystem that cannot be mounted with other owners is found out by trying, and nothing of the trial is left.
func TestTryOwners(t *testing.T) {
	need.Root(t)
	pool, err := subids.HostPool()
	if err != nil {
		t.Fatal(err)
	}
	ids := subids.New(subids.Block{UID: pool.UIDs.First, GID: pool.GIDs.First}, nil, nil)
	plain := t.TempDir()
	if err := unix.Mount("ramfs", plain, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(plain, 0); err != nil {
			t.Error(err)
		}
	})
	able := t.TempDir()
	for dir, want := range map[string]error{able: nil, plain: errNoIDs} {
		if got := TryOwners(dir, ids); !errors.Is(got, want) {
			t.Errorf("%s: got %v, want %v", dir, got, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", dir, left, err)
		}
	}
}
