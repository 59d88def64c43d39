package consulhttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

// wakeByWrite: every change of a key reaches a reader that knows its index.
func wakeByWrite(t *testing.T, s Server) {
	l := newLab(t, s)
	a := l.session("release", "1ms")
	for _, c := range []struct {
		name   string
		change func()
		value  string // "" and 404 when the key is gone
	}{
		{"set", func() { l.put("k", "two") }, "two"},
		{"transaction", func() { l.accept("cas", l.cas("k", l.have("k").ModifyIndex, "three")) }, "three"},
		{"lock", func() { l.accept("lock", l.lock("k", a, "four")) }, "four"},
		{"unlock", func() { l.accept("unlock", l.unlock("k", a, "five")) }, "five"},
		{"delete", func() { l.must("DELETE", l.kv("k"), "") }, ""},
		{"created", func() { l.put("k", "six") }, "six"},
		{"subtree deleted", func() { l.must("DELETE", l.kv("k")+"?recurse", "") }, ""},
		{"created by a transaction", func() { l.accept("set", l.set("k", "seven")) }, "seven"},
		{"deleted in a transaction", func() { l.accept("delete", l.op(api.KVDeleteTree, "k")) }, ""},
	} {
		if c.name == "set" {
			l.put("k", "one")
		}
		before := l.do("GET", l.kv("k")+"?raw", "")
		p := l.read(fmt.Sprintf("%s?raw&wait=5m&index=%d", l.kv("k"), before.index))
		c.change()
		got := l.answered(p)
		for c.value != "" && got.code == http.StatusNotFound && l.ctx.Err() == nil {
			// a missing key: Consul may answer early when a neighbour is written; then one asks again
			got = l.do("GET", fmt.Sprintf("%s?raw&wait=5m&index=%d", l.kv("k"), got.index), "")
		}
		want(l, c.name, got.body, c.value)
		if c.value == "" {
			want(l, c.name, got.code, http.StatusNotFound)
		}
		if got.index <= before.index {
			l.Errorf("%s: index: got %d after %d", c.name, got.index, before.index)
		}
	}
}

func wakeOfList(t *testing.T, s Server) {
	l := newLab(t, s)
	a := l.session("delete", "1ms")
	l.put("p/1", "one")
	for _, c := range []struct {
		name   string
		change func()
		names  string
	}{
		{"added", func() { l.put("p/2", "two") }, "p/1 p/2"},
		{"changed", func() { l.put("p/1", "three") }, "p/1 p/2"},
		{"locked", func() { l.accept("lock", l.lock("p/3", a, "")) }, "p/1 p/2 p/3"},
		{"deleted", func() { l.must("DELETE", l.kv("p/1"), "") }, "p/2 p/3"},
		{"session destroyed", func() { l.destroy(a) }, "p/2"},
		{"emptied", func() { l.accept("delete", l.op(api.KVDelete, "p/2")) }, ""},
	} {
		before := l.do("GET", l.kv("p/")+"?keys", "")
		query := fmt.Sprintf("&wait=5m&index=%d", before.index)
		keys, entries := l.read(l.kv("p/")+"?keys"+query), l.read(l.kv("p/")+"?recurse"+query)
		c.change()
		for _, p := range []pending{keys, entries} {
			if got := l.answered(p); got.index <= before.index {
				l.Errorf("%s: index: got %d after %d", c.name, got.index, before.index)
			}
		}
		want(l, c.name, l.names("p/", ""), c.names)
	}
}

func wakeAtSessionEnd(t *testing.T, s Server) {
	l := newLab(t, s)
	member, other := l.session("delete", "1ms"), l.session("delete", "1ms")
	l.accept("ready", l.lock("ready/1/w/0", member, ""), l.lock("ready/1/w/1", other, ""))
	before := l.do("GET", l.kv("ready/1/")+"?keys", "")
	p := l.read(fmt.Sprintf("%s?keys&index=%d", l.kv("ready/1/"), before.index))
	l.destroy(member)
	var names []string
	l.decode(l.answered(p).body, &names)
	want(l, "ready", strings.Join(names, " "), l.k("ready/1/w/1"))

	before = l.do("GET", l.kv("ready/1/")+"?keys", "")
	p = l.read(fmt.Sprintf("%s?keys&index=%d", l.kv("ready/1/"), before.index))
	l.destroy(other)
	got := l.answered(p)
	want(l, "nobody is ready", got.code, http.StatusNotFound)
	if got.index <= before.index {
		l.Errorf("index: got %d after %d", got.index, before.index)
	}
}

func oldIndex(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("k", "one")
	at := l.have("k").ModifyIndex
	for _, index := range []uint64{0, 1, at - 1} {
		a := l.must("GET", fmt.Sprintf("%s?raw&wait=10m&index=%d", l.kv("k"), index), "")
		want(l, fmt.Sprint("index ", index), a.body, "one")
	}
}

// waits is how long a wait of 1 s may be: a sixteenth of jitter comes on top, and what the way takes.
func (l *lab) waits(what, path string) answer {
	l.Helper()
	start := time.Now()
	a := l.do("GET", path+"&wait=1s", "")
	if took := time.Since(start); took < time.Second {
		l.Errorf("%s: answered after %s, want at least 1 s", what, took)
	}
	return a
}

func waitEnds(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("k", "one")
	at := l.have("k").ModifyIndex
	a := l.waits("key", fmt.Sprintf("%s?raw&index=%d", l.kv("k"), at))
	want(l, "same index", a.index, at)
	want(l, "same value", a.body, "one")
	list := l.must("GET", l.kv("k")+"?keys", "").index
	want(l, "same index of the list", l.waits("list", fmt.Sprintf("%s?keys&index=%d", l.kv("k"), list)).index, list)
}

// futureIndex: what a client meets whose server has lost its data. It waits in vain and is then told
// an index that has fallen.
func futureIndex(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("k", "one")
	at := l.have("k").ModifyIndex
	a := l.waits("key", fmt.Sprintf("%s?raw&index=%d", l.kv("k"), at+1_000_000))
	want(l, "value", a.body, "one")
	want(l, "index", a.index, at)
	a = l.waits("list", fmt.Sprintf("%s?keys&index=%d", l.kv("k"), at+1_000_000))
	want(l, "index of the list", a.index, at)
}

func neighbours(t *testing.T, s Server) {
	l := newLab(t, s)
	l.accept("set up", l.set("k", "one"), l.set("k2", "one"), l.set("dir/1", "one"))
	key, list := l.have("k").ModifyIndex, l.do("GET", l.kv("dir/")+"?keys", "").index
	start := time.Now()
	onKey := l.read(fmt.Sprintf("%s?raw&wait=1s&index=%d", l.kv("k"), key))
	onList := l.read(fmt.Sprintf("%s?keys&wait=1s&index=%d", l.kv("dir/"), list))
	for i := range 20 {
		l.accept("neighbours", l.set("k2", fmt.Sprint(i)), l.set("dir2/1", fmt.Sprint(i)), l.set("di", fmt.Sprint(i)))
	}
	want(l, "key", l.answered(onKey).index, key)
	want(l, "list", l.answered(onList).index, list)
	if took := time.Since(start); took < time.Second {
		l.Errorf("answered after %s, want the whole wait of 1 s", took)
	}
}

// sessionExpires: a session that is not renewed ends after 2 × TTL, with its keys and its readers told.
func sessionExpires(t *testing.T, s Server) {
	l := newLab(t, s)
	start := time.Now()
	dying := l.session("delete", "1ms")
	l.accept("ready", l.lock("ready/1/w/0", dying, ""))
	at := l.do("GET", l.kv("ready/1/")+"?keys", "").index
	got := l.answered(l.read(fmt.Sprintf("%s?keys&wait=10m&index=%d", l.kv("ready/1/"), at)))
	took := time.Since(start)
	want(l, "the last key went", got.code, http.StatusNotFound)
	if took < 20*time.Second || took > 30*time.Second {
		l.Errorf("the session of TTL 10 s ended after %s, want 20 s", took)
	}
	want(l, "renew", l.do("PUT", "/v1/session/renew/"+dying, "").code, http.StatusNotFound)
	want(l, "info", strings.TrimSpace(l.do("GET", "/v1/session/info/"+dying, "").body), "[]")
	l.acceptLater("the next holder", l.lock("ready/1/w/0", l.session("delete", "1ms"), ""))
}

// sessionRenewed: a renewal counts 2 × TTL anew; a session without TTL stays.
func sessionRenewed(t *testing.T, s Server) {
	l := newLab(t, s)
	start := time.Now()
	renewed, dying := l.session("release", "1ms"), l.session("delete", "1ms")
	endless := l.sessionOf(`{"NodeChecks":[],"Behavior":"delete"}`)
	l.accept("locks", l.lock("renewed", renewed, "x"), l.lock("dying", dying, "x"), l.lock("stays", endless, "x"))
	at := l.have("dying").ModifyIndex
	pause := time.NewTimer(12 * time.Second)
	defer pause.Stop()
	<-pause.C
	l.must("PUT", "/v1/session/renew/"+renewed, "")
	want(l, "the other one ends", l.answered(l.read(fmt.Sprintf("%s?index=%d", l.kv("dying"), at))).code,
		http.StatusNotFound)
	p := l.have("renewed")
	want(l, "the renewed one holds", p.Session, renewed)
	var seen []api.KVPair
	l.decode(l.answered(l.read(fmt.Sprintf("%s?index=%d", l.kv("renewed"), p.ModifyIndex))).body, &seen)
	want(l, "then it ends too", seen[0].Session, "")
	if took := time.Since(start); took < 32*time.Second {
		l.Errorf("the session renewed at 12 s ended after %s, want 32 s", took)
	}
	want(l, "a session without TTL holds", l.have("stays").Session, endless)
	l.destroy(endless)
}

func lockDelayEnds(t *testing.T, s Server) {
	l := newLab(t, s)
	a, b := l.session("delete", "2s"), l.session("delete", "1ms")
	l.accept("lock", l.lock("k", a, "x"))
	l.destroy(a)
	start := time.Now()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for ok := false; !ok && l.ctx.Err() == nil; {
		<-every.C
		ok, _ = l.txn(l.lock("k", b, "y"))
	}
	if took := time.Since(start); took < 1900*time.Millisecond {
		l.Errorf("locked after %s, want the delay of 2 s", took)
	}
	want(l, "holder", l.have("k").Session, b)
}
