package flags

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/status"
)

// An app that the units' state folder alone knows, or has a later run of, is found there; all else is in the usual one.
func TestFolderOf(t *testing.T) {
	usual, units := status.Dir(filepath.Join(t.TempDir(), "muster")), status.Dir(t.TempDir())
	for _, dir := range []string{usual.App("here"), usual.App("both"), units.App("both"), units.App("units")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for dir, started := range map[string]string{
		usual.App("again"): "2026-01-02T03:04:05Z", units.App("again"): "2026-01-02T03:04:06Z",
		usual.App("here again"): "2026-01-02T03:04:06Z", units.App("here again"): "2026-01-02T03:04:05Z",
	} {
		text := `{"version": 1, "app": "` + filepath.Base(dir) + `", "registry": "unix:gone.sock", "started": "` + started + `"}`
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "app.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for app, want := range map[string]status.Dir{
		"again": units, "here again": usual, "here": usual, "both": usual, "units": units, "neither": usual, "": usual,
	} {
		if got := folderOf(app, usual, units); got != want {
			t.Errorf("%q: got %s, want %s", app, got, want)
		}
		if got := folderOf(app, usual, ""); got != usual {
			t.Errorf("%q with --state-dir: got %s, want %s", app, got, usual)
		}
	}
}
