package apps

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/status"
)

// Apps of systemd units have a state folder of their own: both are listed, the newest first.
func TestListAlso(t *testing.T) {
	at := func(app, started string) status.Dir {
		dir := status.Dir(t.TempDir())
		if err := os.MkdirAll(dir.App(app), 0o700); err != nil {
			t.Fatal(err)
		}
		text := `{"version": 1, "app": "` + app + `", "name": "x", "run": "1", "registry": "unix:gone.sock", "work_dir": "w", ` +
			`"log_dir": "w", "pid": 4194305, "started": "` + started + `"}`
		if err := os.WriteFile(filepath.Join(dir.App(app), "app.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	k := Lookup{State: at("own", "2026-01-02T03:04:05Z"), Warn: io.Discard}
	rows, err := k.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := k.ListAlso(t.Context(), rows, at("unit", "2026-02-02T03:04:05Z"))
	if len(all) != 2 || all[0].App != "unit" || all[1].App != "own" {
		t.Errorf("got %v", all)
	}
	if all := k.ListAlso(t.Context(), rows, status.Dir(filepath.Join(t.TempDir(), "none"))); len(all) != 1 {
		t.Errorf("without such a folder: got %v", all)
	}
}
