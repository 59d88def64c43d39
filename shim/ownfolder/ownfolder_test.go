package ownfolder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

func TestFolderOfAnotherIsNotUsed(t *testing.T) {
	need.Root(t)
	theirs := filepath.Join(t.TempDir(), "muster")
	if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 54321, 54321)); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "muster")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "muster")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	above := filepath.Join(t.TempDir(), "above")
	if err := errors.Join(os.Mkdir(above, 0o700), os.Chmod(above, 0o777)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		theirs: "belongs to uid 54321", open: "others may write to it", link: "not a directory",
		filepath.Join(above, "muster"): "others may write to it",
	} {
		if err := Make(filepath.Dir(dir), filepath.Base(dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", dir, err, want)
		}
	}
}
