package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPlaceInMemoryIsFoundAgainAndCleared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "container")
	place, err := makeMemoryDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if place == dir {
		t.Log("no filesystem of this host is memory")
		return
	}
	var in unix.Statfs_t
	if info, err := os.Lstat(place); err != nil || info.Mode().Perm() != 0o700 || unix.Statfs(place, &in) != nil || in.Type != unix.TMPFS_MAGIC {
		t.Errorf("%s: %v, %v, filesystem %x", place, info, err, in.Type)
	}
	if found := memoryDirs(dir); len(found) != 1 || found[0] != place {
		t.Errorf("found %v, want %s", found, place)
	}
	// A killed agent's is never taken over, whatever lies in it.
	if again, err := makeMemoryDir(dir); err != nil || again == place {
		t.Errorf("made again: %s, %v", again, err)
	}
	for _, left := range append(memoryDirs(dir), place) {
		if err := os.MkdirAll(filepath.Join(left, "root", "usr"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Clear(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

func TestPlacesDiffer(t *testing.T) {
	if a, b := memoryDirOf("/a", "/run"), memoryDirOf("/b", "/run"); a == b || len(filepath.Base(a)) != len("muster-")+16 {
		t.Errorf("%s, %s", a, b)
	}
}
