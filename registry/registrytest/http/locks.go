package consulhttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
)

// acquire and release are the KV forms: true or false.
func (l *lab) acquire(name, session string) bool {
	l.Helper()
	return strings.TrimSpace(l.must("PUT", l.kv(name)+"?acquire="+session, "held by "+session).body) == "true"
}

// release gives the key k back.
func (l *lab) release(session string) bool {
	l.Helper()
	return strings.TrimSpace(l.must("PUT", l.kv("k")+"?release="+session, "released").body) == "true"
}

func lock(t *testing.T, s Server) {
	l := newLab(t, s)
	a, b := l.session("release", "1ms"), l.session("release", "1ms")
	want(l, "release of a missing key", l.release(a), false)
	want(l, "a locks", l.acquire("k", a), true)
	want(l, "holder", l.have("k").Session, a)
	want(l, "a locks again", l.acquire("k", a), true)
	want(l, "b locks", l.acquire("k", b), false)
	want(l, "b releases", l.release(b), false)
	want(l, "value", string(l.have("k").Value), "held by "+a)
	l.put("k", "locks are advisory")
	want(l, "holder after a plain write", l.have("k").Session, a)
	want(l, "a releases", l.release(a), true)
	want(l, "a releases again", l.release(a), false)
	p := l.have("k")
	want(l, "nobody holds it", p.Session, "")
	want(l, "value of the release", string(p.Value), "released")
	want(l, "no delay after a release", l.acquire("k", b), true)
	l.must("DELETE", l.kv("k"), "")
	want(l, "no delay after a deletion", l.acquire("k", a), true)
}

func lockIndex(t *testing.T, s Server) {
	l := newLab(t, s)
	a, b := l.session("release", "1ms"), l.session("release", "1ms")
	locks := func(what string, n uint64) { l.Helper(); want(l, what, l.have("k").LockIndex, n) }
	l.acquire("k", a)
	locks("first lock", 1)
	l.accept("again by its holder", l.lock("k", a, "other"))
	locks("again by its holder", 1)
	l.release(a)
	locks("released", 1)
	l.acquire("k", b)
	locks("second lock", 2)
	l.destroy(b)
	locks("its session destroyed", 2)
	l.put("k", "plain")
	locks("a plain write forgets the count", 0)
	l.acceptLater("lock", l.lock("k", a, "x"))
	locks("a lock after it", 1)
}

func lockDelay(t *testing.T, s Server) {
	l := newLab(t, s)
	b := l.session("release", "1ms")
	for _, c := range []struct {
		name, delay string
		delayed     bool
	}{
		{"none given", ``, true},
		{"seconds", `"LockDelay":"15s",`, true},
		{"a small number is seconds", `"LockDelay":20,`, true},
		{"a large number is nanoseconds", `"LockDelay":15000000000,`, true},
		{"0", `"LockDelay":0,`, false},
		{"0s", `"LockDelay":"0s",`, false},
	} {
		for _, behavior := range []string{"release", "delete"} {
			what, key := c.name+", "+behavior, strings.ReplaceAll(c.name+behavior, " ", "-")
			a := l.sessionOf(fmt.Sprintf(`{%s"Behavior":%q,"TTL":"10s","NodeChecks":[]}`, c.delay, behavior))
			l.accept(what, l.lock(key, a, "x"))
			l.destroy(a)
			if !c.delayed {
				l.accept(what, l.lock(key, b, "y"))
				continue
			}
			l.refuse(what, fmt.Sprintf("1: failed to lock key %q due to lock delay", key), l.set("other", "x"),
				l.lock(key, b, "y"))
			want(l, what+" by the KV form", l.acquire(key, b), false)
			l.put(key, "writes are not delayed")
		}
	}
	l.gone("other")
	a := l.session("delete", "1ms")
	l.accept("lock", l.lock("ms", a, "x"))
	l.destroy(a)
	l.acceptLater("a delay of 1 ms", l.lock("ms", b, "y"))
	want(l, "holder", l.have("ms").Session, b)
	l.accept("unlock", l.unlock("ms", b, "y"))
	l.accept("no delay after unlock", l.lock("ms", l.session("delete", "15s"), "z"))
}

func session(t *testing.T, s Server) {
	l := newLab(t, s)
	id := l.sessionOf(`{"Name":"n","TTL":"11s","Behavior":"delete","LockDelay":"1ms","NodeChecks":[]}`)
	e, meta, err := l.api.Session().Info(id, nil)
	if err != nil || e == nil {
		l.Fatalf("info: got %v, %v", e, err)
	}
	want(l, "info", fmt.Sprint([]any{e.ID, e.Name, e.TTL, e.Behavior, e.LockDelay, e.NodeChecks, e.ServiceChecks}),
		"["+id+" n 11s delete 1ms [] []]")
	if e.CreateIndex == 0 || meta.LastIndex < e.CreateIndex || e.Node == "" {
		l.Errorf("info: got created %d, index %d, node %q", e.CreateIndex, meta.LastIndex, e.Node)
	}
	renewed, _, err := l.api.Session().Renew(id, nil)
	if err != nil || renewed == nil || renewed.ID != id || renewed.TTL != "11s" {
		l.Errorf("renew: got %v, %v", renewed, err)
	}
	l.destroy(id)
	l.destroy(id) // as often as one likes
	want(l, "info of a destroyed session", strings.TrimSpace(l.must("GET", "/v1/session/info/"+id, "").body), "[]")
	want(l, "renew of a destroyed session", l.do("PUT", "/v1/session/renew/"+id, "").code, http.StatusNotFound)
	l.refuse("lock by a destroyed session", fmt.Sprintf("0: invalid session %q", id), l.lock("k", id, "x"))
	l.refuse("lock by none", "0: missing session", l.lock("k", "", "x"))
	l.gone("k")
}

func sessionDefaults(t *testing.T, s Server) {
	l := newLab(t, s)
	for _, c := range []struct{ body, info string }{
		{``, "15s release  [serfHealth]"},
		{`{}`, "15s release  [serfHealth]"},
		{`{"Behavior":"","LockDelay":null,"Unknown":1}`, "15s release  [serfHealth]"},
		{`{"LockDelay":7,"TTL":"0"}`, "7s release 0 [serfHealth]"},
		{`{"Checks":[]}`, "15s release  []"},
		{`{"NodeChecks":[],"TTL":"24h"}`, "15s release 24h []"},
	} {
		id := l.sessionOf(c.body)
		e, _, err := l.api.Session().Info(id, nil)
		if err != nil || e == nil {
			l.Fatalf("info: got %v, %v", e, err)
		}
		want(l, c.body, fmt.Sprint(e.LockDelay, " ", e.Behavior, " ", e.TTL, " ", e.NodeChecks), c.info)
		l.destroy(id)
	}
}

func sessionRefused(t *testing.T, s Server) {
	l := newLab(t, s)
	for _, c := range []struct {
		body string
		code int
		text string
	}{
		{`{"TTL":"9s"}`, 500, "Invalid Session TTL '9000000000', must be between [10s=24h0m0s]"},
		{`{"TTL":"86401s"}`, 500, "Invalid Session TTL '86401000000000', must be between [10s=24h0m0s]"},
		{`{"TTL":"-10s"}`, 500, "Invalid Session TTL '-10000000000', must be between [10s=24h0m0s]"},
		{`{"TTL":"ten"}`, 500, `Session TTL 'ten' invalid: time: invalid duration "ten"`},
		{`{"Behavior":"keep"}`, 500, "Invalid Behavior setting 'keep'"},
		{`{"Node":"elsewhere"}`, 500, "apply failed: Missing node registration"},
		{`{"Node":""}`, 500, "Must provide Node"},
		{`{"NodeChecks":["x"]}`, 500, "apply failed: Missing check 'x' registration"},
		{`{"LockDelay":"7"}`, 400, `Request decode failed: time: missing unit in duration "7"`},
		{`{"TTL"`, 400, "Request decode failed: unexpected EOF"},
	} {
		a := l.do("PUT", "/v1/session/create", c.body)
		want(l, c.body, fmt.Sprint(a.code, " ", a.body), fmt.Sprint(c.code, " ", c.text))
	}
}

// sessionDeletes: what a member's death does. Keys held by others and records stay.
func sessionDeletes(t *testing.T, s Server) {
	l := newLab(t, s)
	dead, other := l.session("delete", "1ms"), l.session("delete", "1ms")
	l.accept("claims",
		l.lock("live/worker/0", dead, "inc"), l.lock("ready/1/worker/0", dead, ""), l.set("members/worker/0", "{}"),
		l.lock("live/worker/1", other, "inc"), l.lock("ready/1/worker/1", other, ""), l.lock("let-go", dead, ""))
	l.accept("unlock", l.unlock("let-go", dead, ""))
	l.destroy(dead)
	want(l, "left", l.names("", ""), "let-go live/worker/1 members/worker/0 ready/1/worker/1")
	l.acceptLater("claimed again", l.op(api.KVCheckNotExists, "live/worker/0"), l.lock("live/worker/0", other, "inc2"))
}

// sessionReleases: what the conductor's death does.
func sessionReleases(t *testing.T, s Server) {
	l := newLab(t, s)
	conductor := l.session("release", "1ms")
	l.accept("found", l.cas("directive", 0, "wait"), l.lock("directive", conductor, "wait"))
	before := l.have("directive")
	waiter := l.read(fmt.Sprintf("%s?index=%d", l.kv("directive"), before.ModifyIndex))
	l.destroy(conductor)
	var seen []api.KVPair
	l.decode(l.answered(waiter).body, &seen)
	want(l, "the waiter sees no session", seen[0].Session, "")
	after := l.have("directive")
	want(l, "value is kept", string(after.Value), "wait")
	want(l, "lock index is kept", after.LockIndex, before.LockIndex)
	if after.ModifyIndex <= before.ModifyIndex {
		l.Errorf("index: got %d after %d", after.ModifyIndex, before.ModifyIndex)
	}
	next := l.session("release", "1ms")
	l.acceptLater("the next one is elected", l.checkIndex("directive", after.ModifyIndex),
		l.lock("directive", next, "wait"))
	want(l, "lock index", l.have("directive").LockIndex, before.LockIndex+1)
}
