package gang

import (
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere runs a verb as on a host that has nothing of the app, but may read its registry.
func (g *gang) elsewhere(verb string, args ...string) *process {
	g.t.Helper()
	state := filepath.Join(g.t.TempDir(), "state")
	words := append([]string{verb, "--state-dir", state, "--registry", g.place.consul.URL()}, args...)
	return start(g.t, verb+" elsewhere", g.environment(), words...)
}

// logsElsewhere: the agents send their logs to whoever may read their registry, one or all, also as they grow.
func logsElsewhere(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin("--api-listen", "127.0.0.1:0")
	for in, a := range cast {
		a.do(cue{Do: "say", Text: "one of " + in})
		a.do(cue{Do: "say", Text: "two of " + in})
	}
	one := g.elsewhere("logs", g.app+"/worker-1", "--stderr", "--tail", "1")
	if code := one.wait(); code != 0 || one.out() != "two of worker-1\n" {
		t.Errorf("one: code %d\n%s%s", code, one.out(), one.err())
	}
	all := g.elsewhere("logs", g.app, "--stderr")
	code := all.wait()
	for _, line := range []string{"worker-0     | one of worker-0\n", "worker-1     | two of worker-1\n"} {
		if code != 0 || !strings.Contains(all.out(), line) {
			t.Errorf("all: code %d, want %q in\n%s%s", code, line, all.out(), all.err())
		}
	}
	follower := g.elsewhere("logs", g.app, "--stderr", "-f")
	await(t, "what was written before", func() bool { return strings.Contains(follower.out(), "two of worker-0") })
	cast["worker-0"].do(cue{Do: "say", Text: "three of worker-0"})
	await(t, "what is written now", func() bool { return strings.Contains(follower.out(), "three of worker-0") })
	for _, a := range cast {
		a.exit(0)
	}
	if code := follower.wait(); code != 0 {
		t.Errorf("the follower: code %d\n%s", code, follower.err())
	}
	g.succeeds()
	over := g.elsewhere("logs", g.app+"/worker-1")
	if code := over.wait(); code != 64 || !strings.Contains(over.err(), "has ended; its logs are on its own host, 127.0.0.1") {
		t.Errorf("over: code %d\n%s", code, over.err())
	}
}
