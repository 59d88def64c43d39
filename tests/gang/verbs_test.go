package gang

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// view is what muster ps APP --json and muster status APP --json say.
type view struct {
	App, Phase string
	Outcome    *string
	Generation int
	Conductor  *string
	Missing    []string
	AwaySince  *string `json:"registry_unreachable_since"`
	Instances  []instanceView
}

type instanceView struct {
	Instance, Phase, Cause string
	Attempt, Restarts      int
	Ports                  map[string]int
	Exit                   *int
	DNSName                string `json:"dns_name"`
}

func (g *gang) view(verb string, args ...string) (v view) {
	g.t.Helper()
	out, code := g.verb(verb, append([]string{g.app, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
		g.t.Fatalf("muster %s %s --json: exit code %d, %v: %q", verb, g.app, code, err, out)
	}
	return v
}

// What runs can be looked at and signalled, and what is over can still be looked at.
func verbs(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	cast["worker-1"].do(cue{Do: "say", Text: "said by the first"})
	var asked [][]string
	asked = append(asked, nil)
	if at.consul != nil {
		asked = append(asked, []string{"--registry", at.consul.URL()})
	}
	for _, args := range asked {
		for _, verb := range []string{"ps", "status"} {
			v := g.view(verb, args...)
			if v.Phase != "running" || v.Outcome != nil || v.Generation != 1 || v.Conductor == nil || len(v.Missing) > 0 || len(v.Instances) != 2 {
				t.Errorf("muster %s %q while it runs: %+v", verb, args, v)
				continue
			}
			for _, in := range v.Instances {
				if in.Phase != "running" || in.Attempt != 1 || !slices.Contains(values(in.Ports), cast[in.Instance].port()) {
					t.Errorf("muster %s %q while it runs: %+v", verb, args, in)
				}
			}
		}
		g.listed(args, "running")
	}
	if out, code := g.verb("signal", g.app+"/worker-1", "KILL"); code != 0 {
		t.Errorf("muster signal: %q, exit code %d", out, code)
	}
	cast["worker-1"].gone()
	again := g.stage.next("worker-1")
	again.do(cue{Do: "say", Text: "said by the second"})
	await(t, "the restart in muster ps", func() bool {
		v := g.view("ps")
		at := slices.IndexFunc(v.Instances, func(in instanceView) bool { return in.Instance == "worker-1" })
		return at >= 0 && v.Instances[at].Restarts == 1 && v.Instances[at].Phase == "running"
	})
	again.exit(0)
	cast["worker-0"].exit(0)
	g.succeeds()

	for _, verb := range []string{"ps", "status"} {
		v := g.view(verb)
		if v.Phase != "done" || v.Outcome == nil || *v.Outcome != "succeeded" || len(v.Instances) != 2 {
			t.Errorf("muster %s after the end: %+v", verb, v)
			continue
		}
		for _, in := range v.Instances {
			if in.Exit == nil || *in.Exit != 0 {
				t.Errorf("muster %s after the end: %+v, want exit 0", verb, in)
			}
		}
	}
	g.listed(nil, "done")
	out, code := g.verb("logs", g.app+"/worker-1", "--stderr")
	if code != 0 || out != "said by the first\nsaid by the second\n" {
		t.Errorf("muster logs after the end: %q, exit code %d, want both attempts' lines", out, code)
	}
	if out, code = g.verb("logs", g.app+"/worker-1", "--agent"); code != 0 || !strings.Contains(out, "killed by SIGKILL") {
		t.Errorf("muster logs --agent after the end: exit code %d, want the death of the first in it: %q", code, out)
	}
}

// listed expects a line of muster ps for the app.
func (g *gang) listed(args []string, phase string) {
	g.t.Helper()
	out, code := g.verb("ps", append([]string{"--json"}, args...)...)
	var list struct {
		Apps []struct{ App, Phase string }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		g.t.Fatalf("muster ps --json: exit code %d, %v: %q", code, err, out)
	}
	at := slices.IndexFunc(list.Apps, func(a struct{ App, Phase string }) bool { return a.App == g.app })
	if at < 0 || list.Apps[at].Phase != phase {
		g.t.Errorf("muster ps --json: %q, want %s %s in it", out, g.app, phase)
	}
}

func values(m map[string]int) []int {
	var all []int
	for _, v := range m {
		all = append(all, v)
	}
	return all
}
