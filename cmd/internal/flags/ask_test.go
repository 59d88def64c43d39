package flags

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/status"
)

// An app that only the units' state folder knows is found there; all else is in the usual one.
func TestFolderOf(t *testing.T) {
	usual, units := status.Dir(filepath.Join(t.TempDir(), "muster")), status.Dir(t.TempDir())
	for _, dir := range []string{usual.App("here"), usual.App("both"), units.App("both"), units.App("units")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for app, want := range map[string]status.Dir{
		"here": usual, "both": usual, "units": units, "neither": usual, "": usual,
	} {
		if got := folderOf(app, usual, units); got != want {
			t.Errorf("%q: got %s, want %s", app, got, want)
		}
		if got := folderOf(app, usual, ""); got != usual {
			t.Errorf("%q with --state-dir: got %s, want %s", app, got, usual)
		}
	}
}
