package gang

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// An app that is over: the same run again ends with its verdict, a new run is a new life.
func finishedApp(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart": "never"}))
	g.begin("--run", "a")["worker-1"].exit(7)
	g.fails(registry.ClassApp, "worker-1", 7, 93)

	for name, want := range map[string]int{"worker-0": 93, "worker-1": 7} {
		p := g.another(name, nil, "--run", "a")
		if code := p.wait(); code != want {
			t.Errorf("agent of %s in the finished run ended with %d, want %d", name, code, want)
		}
		if !strings.Contains(p.err(), "run a is over: failed") {
			t.Errorf("agent of %s said %q, want the verdict in it", name, p.err())
		}
		if n := g.stage.starts(name); n != 1 {
			t.Errorf("%s was started %d times, want once", name, n)
		}
	}

	for name, a := range g.begin("--run", "b") {
		if a.generation() != 2 || a.attempt() != 1 {
			t.Errorf("%s in the new run: generation %d, attempt %d, want 2, 1", name, a.generation(), a.attempt())
		}
		a.exit(0)
	}
	g.succeeds()
	for run, want := range map[string]registry.Outcome{"a": registry.Failed, "b": registry.Succeeded} {
		var v registry.Verdict
		g.decode("verdict/"+run, g.keys()["verdict/"+run].value, &v)
		if v.Outcome != want || v.Run != run {
			t.Errorf("verdict/%s: %+v, want %s", run, v, want)
		}
	}
}

// A run that goes on is not pushed aside.
func anotherRun(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin("--run", "a")
	p := g.another("worker-0", nil, "--run", "b")
	if code := p.wait(); code != 75 {
		t.Errorf("exit code %d, want 75", code)
	}
	if !strings.Contains(p.err(), "run a is not finished") {
		t.Errorf("it said %q, want the unfinished run in it", p.err())
	}
	g.unmoved(cast, "")
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// What a launcher makes of an exit code may be said last of all; exit.json keeps both.
func exitCodeMap(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart": "never"}))
	g.begin("--exit-code-map", "7=42,93=0")["worker-1"].exit(7)
	for name, want := range map[string]struct{ code, mapped int }{"worker-0": {93, 0}, "worker-1": {7, 42}} {
		if code := g.agents[name].wait(); code != want.mapped {
			t.Errorf("agent of %s ended with %d, want %d", name, code, want.mapped)
		}
		var x struct {
			Code   int `json:"agent_code"`
			Mapped int `json:"mapped_code"`
		}
		g.readJSON(g.log(name, "exit.json"), &x)
		if x.Code != want.code || x.Mapped != want.mapped {
			t.Errorf("exit.json of %s: %+v, want %+v", name, x, want)
		}
	}
}
