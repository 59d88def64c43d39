package view

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

func TestMemberPhase(t *testing.T) {
	for _, c := range []struct {
		phase registry.Phase
		live  bool
		act   registry.Act
		want  string
	}{
		{registry.PhaseJoined, true, registry.ActWait, "staging"},
		{registry.PhaseJoined, false, registry.ActWait, missing},
		{registry.PhaseReady, true, registry.ActWait, "waiting"},
		{registry.PhaseReady, true, registry.ActRun, "running"},
		{registry.PhaseReady, true, registry.ActStop, "stopping"},
		{registry.PhaseReady, false, registry.ActRun, missing},
		{registry.PhaseEnded, true, registry.ActRun, "finishing"},
		{registry.PhaseEnded, false, registry.ActRun, "done"},
		{registry.PhaseFailed, true, registry.ActRun, "finishing"},
		{registry.PhaseFailed, false, registry.ActWait, "done"},
		{registry.PhaseLeft, true, registry.ActRun, "leaving"},
		{registry.PhaseLeft, false, registry.ActRun, "done"},
		{registry.PhaseLost, false, registry.ActRun, "lost"},
	} {
		m := consul.MemberStatus{Member: registry.Member{Phase: c.phase}, Live: c.live}
		if got := memberPhase(m, registry.Directive{Act: c.act}); got != c.want {
			t.Errorf("%s, live %t, %s: got %s, want %s", c.phase, c.live, c.act, got, c.want)
		}
	}
}

// What an agent left in files completes its own row only: not that of its successor.
func TestCompleted(t *testing.T) {
	last := status.Instance{
		Identity: status.Identity{Instance: "worker-0"}, Location: status.Location{Pid: 7}, Starts: status.Starts{Generation: 2},
		Advance: status.Advance{Progress: new(0.5), CheckpointStep: new(int64(9))}, End: status.End{Exit: new(3)},
	}
	at := func(pid, gen int, phase string) status.Instance {
		return status.Instance{
			Location: status.Location{Pid: pid}, Starts: status.Starts{Generation: gen}, Phase: phase,
		}
	}
	for name, c := range map[string]struct {
		row  status.Instance
		want bool
	}{
		"the same agent":     {at(7, 2, "failed"), true},
		"another agent":      {at(8, 2, "running"), false},
		"a later generation": {at(7, 3, "running"), false},
		"one that vanished":  {at(7, 2, missing), false},
	} {
		got := completed(c.row, last)
		if filled := got.Progress != nil && got.CheckpointStep != nil && got.Exit != nil; filled != c.want {
			t.Errorf("%s: filled in is %t, want %t", name, filled, c.want)
		}
	}
	if got := completed(status.Instance{Phase: "running"}, status.Instance{}); got.Phase != "running" || got.Exit != nil {
		t.Errorf("nothing left: got %+v", got)
	}
}

// What is left of an earlier run is not of this one: who has not come is missing, and who has no place is not there.
func TestMembersOfAnEarlierRun(t *testing.T) {
	app := appdef.App{Name: "a", Components: []appdef.Component{{Name: "worker", Instances: 3}}}
	text, err := appdef.Encode(app)
	if err != nil {
		t.Fatal(err)
	}
	member := func(index int, run string, phase registry.Phase, live bool) consul.MemberStatus {
		return consul.MemberStatus{Instance: registry.Instance{Component: "worker", Index: index}, Live: live, Member: registry.Member{Run: run, Phase: phase, Exit: &registry.MemberExit{Code: new(3)}}}
	}
	st := consul.Status{Members: []consul.MemberStatus{
		member(0, "2", registry.PhaseReady, true), member(1, "1", registry.PhaseFailed, false), member(2, "1", registry.PhaseReady, false),
		member(3, "1", registry.PhaseEnded, false), member(4, "1", registry.PhaseReady, true),
	}}
	st.App = registry.AppRecord{Run: "2", Def: text, Counts: map[string]int{"worker": 3}}
	st.Directive = registry.Directive{Run: "2", Act: registry.ActWait}
	got := map[string]string{}
	for _, row := range registryRows(st) {
		got[row.Instance] = row.Phase
	}
	want := map[string]string{"worker-0": "waiting", "worker-1": missing, "worker-2": missing, "worker-4": "waiting"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What has ended stands with the time of its end, where that is known: who left before it ran anything has none of its own.
func TestSinceOfTheEnd(t *testing.T) {
	joined, ended := time.Now().Add(-time.Hour), time.Now()
	for _, tt := range []struct {
		phase registry.Phase
		at    time.Time
		want  time.Time
	}{{registry.PhaseEnded, ended, ended}, {registry.PhaseLeft, time.Time{}, joined}, {registry.PhaseLost, ended, joined}, {registry.PhaseReady, ended, joined}} {
		m := consul.MemberStatus{Member: registry.Member{Phase: tt.phase, Origin: registry.Origin{Since: joined}, Exit: &registry.MemberExit{At: tt.at}}}
		if got := memberRow(m, registry.Directive{}).Since; !got.Equal(tt.want) {
			t.Errorf("%s, ended at %s: got %s, want %s", tt.phase, tt.at, got, tt.want)
		}
	}
}

// An agent of this host that is silent while its index is still held has been killed, or hangs; one that another has replaced has not.
func TestSilentAgent(t *testing.T) {
	for inc, want := range map[string]string{"a": "its agent does not answer on this host", "b": ""} {
		st := consul.Status{Members: []consul.MemberStatus{{
			Instance: registry.Instance{Component: "worker"}, Live: true, Member: registry.Member{Run: "1", Inc: "a", Phase: registry.PhaseReady},
		}}}
		st.App.Run = "1"
		v := Of(apps.Facts{Registry: &st, Records: map[string]status.InstanceFile{"worker-0": {Inc: inc}}})
		if len(v.Instances) != 1 || v.Instances[0].Cause != want {
			t.Errorf("record of %s: got %+v, want %q", inc, v.Instances, want)
		}
	}
}

func TestShellExit(t *testing.T) {
	for _, c := range []struct {
		exit status.Exit
		want *int
	}{
		{status.Exit{Code: new(0)}, new(0)},
		{status.Exit{Code: new(3)}, new(3)},
		{status.Exit{Signal: 9}, new(137)},
		{status.Exit{}, nil},
	} {
		got := shellExit(&c.exit)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%+v: got %v, want %v", c.exit, got, c.want)
		}
	}
}

// TestBuilds: the run's protocol is shown, and who is of which build where they differ.
func TestBuilds(t *testing.T) {
	member := func(index int, build string, proto int, live bool) consul.MemberStatus {
		return consul.MemberStatus{
			Instance: registry.Instance{Component: "worker", Index: index}, Live: live,
			Member: registry.Member{Run: "1", Phase: registry.PhaseReady, Origin: registry.Origin{Build: build, Proto: proto}},
		}
	}
	st := consul.Status{
		App:     registry.AppRecord{Run: "1", Created: time.Unix(1, 0), Proto: registry.Proto{Min: 1, Now: 2}},
		Members: []consul.MemberStatus{member(0, "2.0", 2, true), member(1, "1.9", 1, true), member(2, "2.0", 2, true), member(3, "1.0", 1, false)},
	}
	var v App
	v.fromRegistry(&st)
	want := [][2]string{
		{"protocol", "1..2"}, {"build", "1.9 (protocol 1): worker-1"}, {"build", "2.0 (protocol 2): worker-0, worker-2"},
	}
	if got := v.lines(); len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("got %q, want %q", got, want)
	}
	st.Members = []consul.MemberStatus{member(0, "", 0, true), member(1, "", 0, true)}
	st.App.Proto = registry.Proto{}
	v.fromRegistry(&st)
	if got := v.lines(); len(v.Builds) != 1 || got[0] != [2]string{"protocol", "1..1"} || got[1][0] == "build" {
		t.Errorf("one build: got %q", got)
	}
}

// Of more instances than are seen at a glance the phases are counted, trouble first.
func TestManyInstancesAreCounted(t *testing.T) {
	v := App{Instances: make([]status.Instance, manyInstances+1)}
	for i := range v.Instances {
		v.Instances[i].Phase = "running"
	}
	v.Instances[3].Phase = "backoff"
	var out strings.Builder
	if err := v.Print(&out); err != nil || !strings.Contains(out.String(), "\n  phases      9 instances: 1 backoff, 8 running\n") {
		t.Errorf("got %v\n%s", err, out.String())
	}
	v.Instances, out = v.Instances[1:], strings.Builder{}
	if err := v.Print(&out); err != nil || strings.Contains(out.String(), "instances:") {
		t.Errorf("of few: got %v\n%s", err, out.String())
	}
}

// Where the board of a run is stands below its name, as long as it runs.
func TestBoardLine(t *testing.T) {
	v := App{Instances: []status.Instance{{
		Identity: status.Identity{Instance: "worker-0", Role: "worker"}, Phase: "running",
		Location: status.Location{Exports: map[string]string{"worker.board": "http://h1:6006", "worker.host_port": "h1:2222"}},
	}}}
	if got := v.lines(); !slices.Contains(got, [2]string{"board", "worker-0: http://h1:6006"}) {
		t.Errorf("got %q", got)
	}
	v.Verdict = &registry.Verdict{Outcome: registry.Succeeded}
	for _, line := range v.lines() {
		if line[0] == "board" {
			t.Errorf("after the end: %q", line)
		}
	}
}

// The app's progress is the mean of the chiefs and workers that report one.
func TestProgress(t *testing.T) {
	row := func(role, name string, progress *float64) status.Instance {
		return status.Instance{
			Identity: status.Identity{Instance: name, Role: role}, Advance: status.Advance{Progress: progress},
		}
	}
	for name, c := range map[string]struct {
		rows []status.Instance
		want *float64
		line string
	}{
		"none reports": {[]status.Instance{row("worker", "worker-0", nil)}, nil, ""},
		"one of one":   {[]status.Instance{row("worker", "worker-0", new(0.5))}, new(0.5), ""},
		"two of three": {
			[]status.Instance{
				row("ps", "ps-0", new(0.9)), row("chief", "chief-0", new(0.5)), row("worker", "worker-0", new(0.25)),
				row("worker", "worker-1", nil), row("service", "board-0", new(1.0)),
			}, new(0.375), "38% (mean of 2 of 3 workers)",
		},
	} {
		lasts := map[string]status.Instance{}
		for _, r := range c.rows {
			lasts[r.Instance] = r
		}
		v := Of(apps.Facts{Lasts: lasts})
		if got := v.Progress; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		line := ""
		for _, l := range v.lines() {
			if l[0] == "progress" {
				line = l[1]
			}
		}
		if line != c.line {
			t.Errorf("%s: got line %q, want %q", name, line, c.line)
		}
	}
}

// A key stands in the URL of its own page alone, and in none after the run.
func TestShowKeys(t *testing.T) {
	key, err := gate.Key("t", "d1", "worker-0", "board")
	if err != nil {
		t.Fatal(err)
	}
	const own, other = "http://h1:7001/", "http://other.example:7001/"
	facts := apps.Facts{ID: "d1", Registry: &consul.Status{App: registry.AppRecord{Token: "t"}}}
	for _, tt := range []struct {
		verdict *registry.Verdict
		want    map[string]string
	}{
		{nil, map[string]string{"worker.board": own + "?token=" + key, "worker.other": other}},
		{&registry.Verdict{}, map[string]string{"worker.board": own, "worker.other": other}},
	} {
		v := App{Verdict: tt.verdict, Instances: []status.Instance{{
			Identity: status.Identity{Instance: "worker-0"}, Location: status.Location{
				Host: "h1", Ports: map[string]int{"side.board": 7001, "side.board.inner": 7002},
				Exports: map[string]string{"worker.board": own, "worker.other": other},
			},
		}}}
		if v.ShowKeys(facts); !maps.Equal(v.Instances[0].Exports, tt.want) {
			t.Errorf("verdict %v: got %v, want %v", tt.verdict, v.Instances[0].Exports, tt.want)
		}
	}
}
