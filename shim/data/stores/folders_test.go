package stores

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/need"
)

// Where the work folder lies in the default filesystem, the container gets the folders of the data alone.
func TestFoldersIn(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"in", "out", "work/store", "beside"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &Stores{WorkDir: filepath.Join(top, "work"), Owner: func() *plan.UserFacts { return nil }}
	got := s.foldersIn(top, []string{
		"file:" + top + "/out", top + "/in", "file:" + top + "/in", "file:" + top, "hdfs://name/in", top + "/work/store", top + "/gone", top + "/..",
		filepath.Dir(top), "",
	})
	if want := []string{top + "/in", top + "/out"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A container is shown no folder that its process's user could not enter: neither by its path nor by a link.
func TestAttackFolderBehindAClosedOne(t *testing.T) {
	need.Root(t)
	top, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(top, "open"), filepath.Join(top, "closed", "in"), filepath.Join(top, "work")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Dir(top), 0o755), os.Chmod(top, 0o755), os.Chmod(filepath.Join(top, "closed"), 0o700),
		os.Symlink(outside, filepath.Join(top, "out")), os.Symlink("closed/in", filepath.Join(top, "link"))); err != nil {
		t.Fatal(err)
	}
	s := &Stores{
		WorkDir: filepath.Join(top, "work"), Owner: func() *plan.UserFacts { return &plan.UserFacts{UID: 64001, GID: 64001} },
	}
	got := s.foldersIn(top, []string{top + "/open", top + "/closed/in", top + "/out", top + "/link"})
	if want := []string{top + "/open"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
