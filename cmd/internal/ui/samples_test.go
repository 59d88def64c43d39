package ui

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/metrics"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
)

// addAgent answers as the agent of an instance of an app on this host.
func addAgent(t *testing.T, state status.Dir, app, instance string, s status.Source) {
	t.Helper()
	l, err := status.Listen(state.Socket(app, instance))
	if err == nil {
		err = status.WriteJSON(filepath.Join(state.App(app), instance+".json"), status.InstanceFile{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.State = func() status.State {
		return status.State{App: app, Run: "1", Instance: status.Instance{
			Version: 1, Phase: "running",
			Identity: status.Identity{Instance: instance, Component: "worker"},
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- status.Serve(ctx, l, status.Handler(s)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// The samples are those of all instances whose agents answer, after a moment.
func TestSamples(t *testing.T) {
	base, state, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	const none = `{"version":1,"instances":[]}`
	if code, text, _ := get(t, c, base+"/api/v1/apps/d1/samples", ""); code != 200 || strings.TrimSpace(text) != none {
		t.Errorf("without agents: %d %s", code, text)
	}
	for _, name := range []string{"worker-1", "worker-0"} {
		addAgent(t, state, "d1", name, status.Source{Samples: func(since int64) samples.Table {
			return samples.Table{Version: 1, Instance: name, At: []int64{since + 5}}
		}})
	}
	code, text, _ := get(t, c, base+"/api/v1/apps/d1/samples?since=7", "")
	if code != 200 || !strings.Contains(text, `{"version":1,"instances":[{"version":1,"instance":"worker-0",`) ||
		strings.Count(text, `"at":[12]`) != 2 {
		t.Errorf("got %d %s", code, text)
	}
	if code, text, _ := get(t, c, base+"/api/v1/apps/d1/samples?since=now", ""); code != 400 || !strings.Contains(text, "whole seconds") {
		t.Errorf("no number: %d %s", code, text)
	}
	if code, _, _ := get(t, browser(t), base+"/api/v1/apps/d1/samples", ""); code != 401 {
		t.Errorf("without a session: %d", code)
	}
}

// All apps' metrics are in one text: those of each agent under its own labels, and the app's.
func TestMetrics(t *testing.T) {
	base, state, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	addApp(t, state, "d2")
	says := func(text string) status.Source {
		return status.Source{MetricsType: "text/plain", Metrics: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "# TYPE muster_attempt gauge\n"+text)
			return err
		}}
	}
	addAgent(t, state, "d1", "worker-1", says(`muster_attempt{app="d2",index="7"} 4`+"\nup 1\n"))
	addAgent(t, state, "d1", "worker-0", says("muster_attempt 3\n"))
	addAgent(t, state, "d2", "worker-0", says("muster_attempt{ 3\n"))
	addAgent(t, state, "d2", "worker-1", says(strings.Repeat("#\n", metrics.MostText)))
	code, text, head := get(t, c, base+"/metrics", "")
	const want = `muster_attempt{app="d1",component="worker",index="0"} 3
muster_attempt{app="d1",component="worker",index="1"} 4
muster_app_phase{app="d1",phase="running"} 1
muster_app_phase{app="d2",phase="running"} 1
muster_app_live_instances{app="d1"} 2
muster_app_live_instances{app="d2"} 2
muster_app_unreachable_agents{app="d1"} 0
muster_app_unreachable_agents{app="d2"} 2
muster_app_start_time_seconds{app="d1"} 1.767323045e+09
muster_app_start_time_seconds{app="d2"} 1.767323045e+09
`
	var got strings.Builder
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			got.WriteString(line)
		}
	}
	if code != 200 || got.String() != want || !strings.HasPrefix(head.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("got %d %v\n%s", code, head, text)
	}
	if code, _, _ := get(t, browser(t), base+"/metrics", ""); code != 401 {
		t.Errorf("without a session: %d", code)
	}
}
