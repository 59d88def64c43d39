package apps

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
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

// When a run began, and how long it took, is the same on the host that launched it as on others, which ask the registry
// alone; a registry of the run's own, which nobody else asks, changes nothing of what the host's files say.
func TestStartedAndTook(t *testing.T) {
	launched := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	founded, now := launched.Add(time.Second), launched.Add(time.Minute)
	ended := registry.Verdict{Run: "1", Outcome: registry.Succeeded, At: founded.Add(30 * time.Second)}
	for name, tt := range map[string]struct {
		here, own bool
		verdict   *registry.Verdict
		started   time.Time
		took      float64
	}{
		"elsewhere, running":       {false, false, nil, founded, 59},
		"here, running":            {true, false, nil, founded, 59},
		"here, by itself, running": {true, true, nil, launched, 60},
		"elsewhere, over":          {false, false, &ended, founded, 30},
		"here, over":               {true, false, &ended, founded, 30},
		"here, by itself, over":    {true, true, &ended, launched, 33},
	} {
		f := Facts{ID: "d1", own: tt.own, Registry: &consul.Status{App: registry.AppRecord{Run: "1", Created: founded}, Verdict: tt.verdict}}
		if f.Registry.Directive.Act = registry.ActRun; tt.verdict == nil {
			f.Registry.Live = 1
		}
		if tt.here {
			f.Local = &status.AppFile{Run: "1", Started: launched}
		}
		if tt.here && tt.verdict != nil {
			f.Result = &status.ResultFile{}
			f.Result.Times.Total = 33
		}
		row := rowOf(f, now)
		if row.Started == nil || !row.Started.Equal(tt.started) || row.Seconds == nil || *row.Seconds != tt.took {
			t.Errorf("%s: started %v, took %v, want %v, %v", name, row.Started, row.Seconds, tt.started, tt.took)
		}
	}
}

// A run's own registry is known by its socket in the app's folder of state.
func TestOwnRegistry(t *testing.T) {
	state := status.Dir(t.TempDir())
	for at, own := range map[registry.Address]bool{
		registry.SocketAddress(state.Socket("d1", "registry")): true, registry.SocketAddress("/run/shared.sock"): false,
	} {
		if err := os.MkdirAll(state.App("d1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := status.WriteJSON(filepath.Join(state.App("d1"), "app.json"), status.AppFile{Run: "1", Registry: at}); err != nil {
			t.Fatal(err)
		}
		f, err := Lookup{State: state, Warn: io.Discard}.OnHost(t.Context(), "d1")
		if err != nil || f.own != own {
			t.Errorf("%s: own is %t, want %t: %v", at, f.own, own, err)
		}
	}
}
