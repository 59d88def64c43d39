package ui

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// keepRun leaves a run of one instance in the store at dir, that began at a minute of an hour and took ten seconds.
func keepRun(t *testing.T, dir, app, run string, minute int, cause string) {
	t.Helper()
	var log bytes.Buffer
	z := gzip.NewWriter(&log)
	if _, err := io.WriteString(z, "this is "+run+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("2026-01-02T03:%02d:", minute)
	for name, text := range map[string]string{
		"run.json": `{"version": 1, "app": "` + app + `", "run": "` + run + `", "name": "x", "user": "ann", "launcher": "slurm",
			"started": "` + at + `05Z", "ended": "` + at + `15Z", "outcome": "failed", "directive": {"gen": 2, "run": "` + run + `"},
			"verdict": {"version": 1, "run": "` + run + `", "outcome": "failed", "cause": "` + cause + `", "at": "` + at + `15Z"},
			"members": [{"instance": "worker-0", "record": {"run": "` + run + `", "ph": "ended", "gen": 2}}]}`,
		"worker-0/state.json":    `{"version": 1, "app": "` + app + `", "run": "` + run + `", "instance": "worker-0", "component": "worker", "phase": "done", "generation": 2}`,
		"worker-0/exit.json":     `{"version": 1}`,
		"worker-0/events.jsonl":  `{"at": "` + at + `05Z", "instance": "worker-0", "generation": 2, "attempt": 1, "from": "waiting", "to": "running"}` + "\n",
		"worker-0/stdout.log.gz": log.String(), "worker-0/agent.log.gz": log.String(),
	} {
		path := filepath.Join(dir, app, run, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Each run that the history store has is seen as the app is, whatever the app does now.
func TestRuns(t *testing.T) {
	dir := t.TempDir()
	keepRun(t, dir, "d1", "r1", 1, "worker-0 exited with 1")
	keepRun(t, dir, "d1", "r2", 2, "worker-0 exited with 2")
	kept := history.New("file://"+dir, schemes.Local())
	t.Cleanup(kept.Close)
	base, _, links := serveWith(t, func(k *apps.Lookup) { k.Past.Store = kept })
	c := browser(t)
	get(t, c, <-links, "")
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{"/api/v1/apps/d1", 200, `"run":"1"`}, // of this host
		{"/api/v1/apps/d1/runs/r1", 200, `"run":"r1","phase":"done","outcome":"failed"`},
		{"/api/v1/apps/d1/runs/r2", 200, `"cause":"worker-0 exited with 2"`},
		{"/api/v1/apps/d1/runs/r1/logs/worker-0/stdout?follow=true", 200, "this is r1\n"},
		{"/api/v1/apps/d1/runs/r2/logs/worker-0/stdout", 200, "this is r2\n"},
		{"/api/v1/apps/d1/runs/r2/logs/worker-0/stderr", 200, "this log is not in the history store"},
		{"/api/v1/apps/d1/runs/r2/timeline", 200, `"phase":"running","from":"2026-01-02T03:02:05Z"`},
		{"/api/v1/apps/d1/runs/r2/samples", 200, `"instances":[`},
		{"/api/v1/apps/d1/runs/r3", 404, `no run \"r3\" of d1 in the history store`},
		{"/api/v1/apps/d1/runs/..%2fr2", 404, "no run"},
		{"/api/v1/apps/..%2fd1/runs", 400, "app"},
		{"/api/v1/apps/d2/runs", 200, `"runs":[]`},
		{"/apps/d1/runs/r1", 200, "<title>muster</title>"},
	} {
		code, text, _ := get(t, c, base+tt.path, "")
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.path, code, text, tt.code, tt.want)
		}
	}
	var list pastRuns
	_, text, _ := get(t, c, base+"/api/v1/apps/d1/runs", "")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Runs) != 2 || list.Runs[0].Run != "r2" || list.Runs[1].Generations != 2 || list.Runs[1].Launcher != "slurm" ||
		list.Runs[1].Ended.Sub(*list.Runs[1].Started).Seconds() != 10 {
		t.Errorf("the runs: %s", text)
	}
}

// Without a store an app has no runs to list, and one that is asked for is not found.
func TestRunsWithoutStore(t *testing.T) {
	base, _, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	if code, text, _ := get(t, c, base+"/api/v1/apps/d1/runs", ""); code != 200 || !strings.Contains(text, `"runs":[]`) {
		t.Errorf("the runs: %d %s", code, text)
	}
	if code, text, _ := get(t, c, base+"/api/v1/apps/d1/runs/r1", ""); code != 404 || !strings.Contains(text, "muster ui --history URL") {
		t.Errorf("a run: %d %s", code, text)
	}
}
