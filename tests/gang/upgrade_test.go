package gang

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestUpgrade plays gangs whose agents are of two builds.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	next := buildNext(t)
	of := func(play func(*testing.T, place, string)) func(*testing.T, place) {
		return func(t *testing.T, at place) { play(t, at, next) }
	}
	playAll(t, place{consul: consulserver.Start(t, consulserver.Options{})}, []scenario{
		{"a running gang is upgraded", of(upgraded)},
		{"a running gang is downgraded", of(downgraded)},
		{"a build that is too old", of(tooOld)},
	})
}

// launchOf starts the agent of an instance with a build.
func (g *gang) launchOf(build, instance string) {
	g.t.Helper()
	in, err := registry.ParseInstance(instance)
	if err != nil {
		g.t.Fatal(err)
	}
	g.agents[instance] = startBuild(g.t, build, "agent of "+instance, g.environment(), g.agentArgs(in)...)
}

// replace ends an instance's agent, as an upgrade of its host does, and starts that of another build in its place.
func (g *gang) replace(cast map[string]*actor, instance, build string) {
	g.t.Helper()
	starts := map[string]int{}
	for name := range cast {
		starts[name] = g.stage.starts(name)
	}
	g.agents[instance].signal(syscall.SIGTERM)
	if code := g.agents[instance].wait(); code != 143 {
		g.t.Errorf("the agent of %s ended with %d, want 143", instance, code)
	}
	g.launchOf(build, instance)
	cast[instance] = g.stage.next(instance)
	if got := cast[instance]; got.generation() != 1 || got.attempt() != 2 {
		g.t.Errorf("%s: generation %d, attempt %d, want 1, 2", instance, got.generation(), got.attempt())
	}
	if m := g.member(instance); m.Budget.Used != 0 {
		g.t.Errorf("%s: budget used %d, want 0: its launcher ended it", instance, m.Budget.Used)
	}
	for name, n := range starts {
		cast[name].stays()
		if now := g.stage.starts(name); name != instance && now != n {
			g.t.Errorf("%s was started again when %s was replaced", name, instance)
		}
	}
}

// replaceAll replaces all agents, the conductor's last but one, and shows who has been after each.
func (g *gang) replaceAll(cast map[string]*actor, build string, see func(replaced []string)) {
	g.t.Helper()
	conductor := g.conductor()
	order := []string{}
	for _, in := range g.def.instances() {
		if in != conductor {
			order = append(order, in)
		}
	}
	last := len(order) - 1
	order = append(order[:last:last], conductor, order[last])
	for i, in := range order {
		inc := g.member(in).Inc
		g.replace(cast, in, build)
		if in == conductor {
			g.awaitAnother(inc)
		}
		see(order[:i+1])
	}
	g.conductor()
}

// novel is what the next build has written into a record.
func (g *gang) novel(key string) string {
	g.t.Helper()
	var record struct{ Novel string }
	g.decode(key, g.keys()[key].value, &record)
	return record.Novel
}

// says expects what status says of the run.
func (g *gang) statusSays(want ...string) {
	g.t.Helper()
	out, code := g.verb("status", g.app, "--registry", g.place.consul.URL())
	for _, line := range want {
		if !strings.Contains(out, line) || code != 0 {
			g.t.Errorf("status: exit code %d, want %q in\n%s", code, line, out)
		}
	}
}

// record is the app's record.
func (g *gang) record() (a registry.AppRecord) {
	g.t.Helper()
	g.decode("app", g.keys()["app"].value, &a)
	return a
}

// Each agent of a running gang is replaced by one of the next build, one after the other: each process restarts once,
// with its agent. A new setting and new fields are in nobody's way.
func upgraded(t *testing.T, at place, next string) {
	g := newGang(t, at, training(2, nil))
	cast := g.begin()
	if p := g.record().Proto; p.String() != "1..1" {
		t.Errorf("the run has protocol %s, want 1..1", p)
	}
	g.statusSays("protocol    1..1")
	g.replaceAll(cast, next, func(replaced []string) {
		if len(replaced) == 1 {
			g.statusSays("protocol    1..1", "(protocol 1): ", nextVersion+" (protocol 2): "+replaced[0]+"\n")
		}
	})
	if m := g.member("ps-0"); m.Build != nextVersion || m.Proto != 2 || g.novel("members/ps/0") != "member" {
		t.Errorf("record of ps-0: %+v", m)
	}
	if g.novel("directive") != "directive" || g.novel("app") != "" || g.record().Proto.String() != "1..1" {
		t.Errorf("the directive and the app's record: %s, %s", g.keys()["directive"].value, g.keys()["app"].value)
	}
	for _, in := range []string{"worker-0", "worker-1"} {
		cast[in].exit(0)
	}
	g.succeeds()
}

// The same in the other direction: agents of this build keep what the next one has written, whatever they rewrite.
func downgraded(t *testing.T, at place, next string) {
	g := newGang(t, at, training(2, nil))
	for _, in := range g.def.instances() {
		g.launchOf(next, in)
	}
	cast := g.cast(g.def.instances()...)
	if p := g.record().Proto; p.String() != "1..2" {
		t.Errorf("the run has protocol %s, want 1..2", p)
	}
	g.replaceAll(cast, muster, func([]string) {})
	g.statusSays("protocol    1..2")
	if m := g.member("ps-0"); m.Proto != 1 || m.Build == nextVersion {
		t.Errorf("record of ps-0: %+v", m)
	}
	if by, _ := g.directive(); g.novel("app") != "app" {
		t.Errorf("the app's record under the conductor %s: %s", by.By, g.keys()["app"].value)
	}
	// this build conducts, and rewrites both records
	g.flexes("worker 2 to 1, in generation 1", "worker=1")
	if n := g.record().Counts["worker"]; n != 1 || g.novel("app") != "app" {
		t.Errorf("the app's record has %d workers: %s", n, g.keys()["app"].value)
	}
	g.agents["worker-1"].wait()
	cast["worker-0"].exit(0)
	g.succeeds()
}

// A run that takes no agent below its protocol refuses this build before it does anything; the next one may join.
func tooOld(t *testing.T, at place, next string) {
	g := newGang(t, at, workers(2, nil))
	g.launchOf(next, "worker-0")
	g.sees("worker-0", "waiting", "")
	g.edit("app", "proto", map[string]int{"min": 2, "now": 2})

	g.launch("worker-1")
	if code := g.agents["worker-1"].wait(); code != 65 {
		t.Errorf("exit code %d, want 65", code)
	}
	const want = "this muster speaks protocol 1..1, run 1 has 2..2 and takes no agent below 2: install the muster of the run's " +
		"other agents on this host"
	g.agents["worker-1"].says(want)
	if _, there := g.keys()["members/worker/1"]; there {
		t.Error("the refused agent has left a record")
	}
	g.edit("app", "proto", map[string]int{"min": 1, "now": 2}) // the digest in the record is in the form of 1
	g.launchOf(next, "worker-1")
	for _, a := range g.cast("worker-0", "worker-1") {
		a.exit(0)
	}
	g.succeeds()
}

// edit changes a member of a record past muster.
func (g *gang) edit(key, name string, value any) {
	g.t.Helper()
	var record map[string]any
	g.decode(key, g.keys()[key].value, &record)
	record[name] = value
	text, err := json.Marshal(record)
	if err != nil {
		g.t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s/v1/kv/muster/%s/%s", g.place.consul.HTTPAddr, g.app, key)
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPut, url, strings.NewReader(string(text)))
	if err != nil {
		g.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("put %s: %s", key, resp.Status)
	}
}
