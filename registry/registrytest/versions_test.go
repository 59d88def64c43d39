package registrytest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// novel is a value that no build knows.
const novel = `{"of":["a later build",1.50]}`

// edit changes a record as an agent of another build would: below path, a list of member names.
func (r raw) edit(key, name string, value any, path ...string) {
	r.t.Helper()
	e, _, ok := r.get(key)
	if !ok {
		r.t.Fatalf("no key %s", key)
	}
	var record map[string]any
	d := json.NewDecoder(bytes.NewReader(e.Value))
	d.UseNumber()
	must(r.t, d.Decode(&record))
	at := record
	for _, p := range path {
		at = at[p].(map[string]any)
	}
	at[name] = value
	r.record(key, record)
}

// kept checks that a record still has the novel member.
func (r raw) kept(key string, path ...string) {
	r.t.Helper()
	e, _, ok := r.get(key)
	if !ok {
		r.t.Errorf("no key %s", key)
		return
	}
	at := json.RawMessage(e.Value)
	for _, p := range append(path, "novel") {
		var members map[string]json.RawMessage
		if json.Unmarshal(at, &members) != nil || members[p] == nil {
			r.t.Errorf("%s: no %s any more: %s", key, strings.Join(append(path, "novel"), "."), e.Value)
			return
		}
		at = members[p]
	}
	if string(at) != novel {
		r.t.Errorf("%s: novel is now %s, want %s", key, at, novel)
	}
}

// newerFieldsSurvive: who rewrites a record keeps what a later build has added to it: the conductor in the directive, in
// the app's record and in that of a lost member, and members in their own.
func newerFieldsSurvive(t *testing.T, s server) {
	a := newApp(t, s)
	a.facts.Times.Lost = 1
	all := a.assemble(t, 1)
	kv, later := rawOf(t, a.url), json.RawMessage(novel)
	app, directive, worker := a.facts.App+"/app", a.facts.App+"/directive", a.facts.App+"/members/worker/"
	kv.edit(app, "novel", later)
	kv.edit(app, "novel", later, "times")
	kv.edit(directive, "novel", later)
	kv.edit(directive, "novel", later, "roster")
	kv.edit(worker+"1", "novel", later)
	kv.edit(worker+"0", "novel", later)

	dead := all[1]
	dead.membership.Close()
	e, _, _ := kv.get(a.facts.App + "/live/worker/1")
	kv.destroy(e.Session) // as its end by time would
	all[0].told(2, registry.ActWait)
	if m := all[0].member("worker-1"); m.Phase != registry.PhaseLost {
		t.Errorf("worker-1: %+v", m.Member)
	}
	kv.kept(worker + "1")
	kv.kept(directive)
	kv.kept(directive, "roster")

	all = append(all.without(dead), a.agent(t, "worker-1", func(g *agent) { g.me.Member.Machine = "another" }).join())
	all.release(2)
	kv.kept(worker + "0")
	kv.kept(directive)

	must(t, all[0].client.Ask(soon(t), a.facts.App, registry.Ask{Kind: registry.AskFlex, Args: map[string]string{"worker": "1"}}))
	all[0].told(3, registry.ActWait)
	if n := all[0].status().App.Counts["worker"]; n != 1 {
		t.Errorf("the app's record has %d workers", n)
	}
	kv.kept(app)
	kv.kept(app, "times")
}

// tooOld: an agent whose build speaks less than the run asks for is refused, with both numbers.
func tooOld(t *testing.T, s server) {
	a := newApp(t, s)
	first := a.agent(t, "worker-0").join()
	rawOf(t, a.url).edit(a.facts.App+"/app", "proto", map[string]int{"min": 8, "now": 9})
	err := a.agent(t, "worker-1").tryJoin()
	if err == nil || !strings.Contains(err.Error(), "protocol") || !strings.Contains(err.Error(), "8") {
		t.Errorf("an agent that is too old: %v", err)
	}
	if m := first.status().Members; len(m) != 1 {
		t.Errorf("members %+v", m)
	}
}

// anotherRunsConductor: an agent that is left of an earlier run does not conduct the next one, whose definition and
// version it may not know.
func anotherRunsConductor(t *testing.T, s server) {
	a := newApp(t, s)
	old := a.assemble(t, 1)
	old[1].finish(1)
	old[0].finish(1)
	old.each(func(g *agent) { g.told(1, registry.ActStop) })
	old[1:].each((*agent).leave)
	kv := rawOf(t, a.url)
	kv.until(a.facts.App+"/directive", func(e entry, _ bool) bool { return e.Session == "" })

	a.facts.Run = "2"
	next := gang{a.agent(t, "worker-1", anotherOne).join(), a.agent(t, "ps-0", anotherOne).join()}
	next[0].membership.Close()
	e, _, _ := kv.get(a.facts.App + "/directive")
	kv.destroy(e.Session) // as its end by time would
	by := kv.until(a.facts.App+"/directive", func(now entry, _ bool) bool { return now.Session != "" && now.Session != e.Session })
	var d registry.Directive
	must(t, json.Unmarshal(by.Value, &d))
	if d.By == old[0].me.Member.Inc {
		t.Error("an agent of run 1 conducts run 2")
	}
}
