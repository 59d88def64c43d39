package consulhttp

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
)

func keys(t *testing.T, s Server) {
	l := newLab(t, s)
	l.must("PUT", l.kv("a")+"?flags=42", "value\x00\xff")
	p := l.have("a")
	want(l, "value", string(p.Value), "value\x00\xff")
	want(l, "flags", p.Flags, 42)
	want(l, "session", p.Session, "")
	for _, mode := range []string{"", "?stale", "?consistent"} {
		a := l.must("GET", l.kv("a")+mode, "")
		want(l, "index of a key"+mode, a.index, p.ModifyIndex)
		var list []map[string]any
		l.decode(a.body, &list)
		want(l, "value as sent"+mode, list[0]["Value"], any(base64.StdEncoding.EncodeToString(p.Value)))
		_, held := list[0]["Session"]
		want(l, "an unlocked key shows a session"+mode, held, false)
	}
	raw := l.must("GET", l.kv("a")+"?raw&stale", "")
	want(l, "raw", raw.body, "value\x00\xff")
	want(l, "raw type", raw.head.Get("Content-Type"), "text/plain")
	want(l, "raw index", raw.index, p.ModifyIndex)
	l.put("empty", "")
	if a := l.must("GET", l.kv("empty"), ""); !strings.Contains(strings.ReplaceAll(a.body, " ", ""), `"Value":null`) {
		l.Errorf("key without a value: got %s, want null", a.body)
	}
	want(l, "raw of no value", l.must("GET", l.kv("empty")+"?raw", "").body, "")
}

func missingKey(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("there", "x")
	at := l.have("there").ModifyIndex
	for _, query := range []string{"", "?raw", "?recurse", "?keys", "?raw&stale", "?keys&separator=/"} {
		a := l.do("GET", l.kv("no/")+query, "")
		want(l, "code"+query, a.code, http.StatusNotFound)
		want(l, "body"+query, a.body, "")
		if a.index < at {
			l.Errorf("index of a missing key%s: got %d, want at least %d", query, a.index, at)
		}
	}
	names, _, err := l.api.KV().Keys(l.k("no/"), "", nil)
	if err != nil || len(names) != 0 {
		l.Errorf("keys of nothing by the client: got %v, %v", names, err)
	}
}

func list(t *testing.T, s Server) {
	l := newLab(t, s)
	for _, name := range []string{"m/b", "m/a/1", "m/a", "n"} {
		l.put(name, "value of "+name)
	}
	pairs, meta, err := l.api.KV().List(l.k("m/"), nil)
	if err != nil {
		l.Fatal(err)
	}
	var got []string
	var newest uint64
	for _, p := range pairs {
		got = append(got, strings.TrimPrefix(p.Key, l.prefix)+"="+string(p.Value))
		newest = max(newest, p.ModifyIndex)
	}
	want(l, "list", strings.Join(got, " "), "m/a=value of m/a m/a/1=value of m/a/1 m/b=value of m/b")
	want(l, "index of a list", meta.LastIndex, newest)
	want(l, "keys", l.names("m/", ""), "m/a m/a/1 m/b")
	want(l, "keys of a prefix that ends within a name", l.names("m/a", ""), "m/a m/a/1")
	a := l.must("GET", "/v1/kv/?keys", "")
	var all []string
	l.decode(a.body, &all)
	if !slices.Contains(all, l.k("n")) {
		l.Errorf("keys of everything lack %s", l.k("n"))
	}
}

func (l *lab) names(prefix, separator string) string {
	l.Helper()
	names, _, err := l.api.KV().Keys(l.k(prefix), separator, nil)
	if err != nil {
		l.Fatal(err)
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, l.prefix)
	}
	return strings.Join(names, " ")
}

func separator(t *testing.T, s Server) {
	l := newLab(t, s)
	for _, name := range []string{"v/ps/0", "v/ps/1", "v/worker/0", "v/alone", "v/zz--x--y"} {
		l.put(name, "")
	}
	want(l, "by slash", l.names("v/", "/"), "v/alone v/ps/ v/worker/ v/zz--x--y")
	want(l, "by two characters", l.names("v/", "--"), "v/alone v/ps/0 v/ps/1 v/worker/0 v/zz--")
	want(l, "without the slash at the end", l.names("v", "/"), "v/")
	a := l.must("GET", l.kv("v/")+"?keys&seperator=/", "")
	want(l, "the old spelling", strings.Count(a.body, "ps/"), 1)
}

func cas(t *testing.T, s Server) {
	l := newLab(t, s)
	for _, step := range []struct {
		name  string
		index func() uint64
		value string
		ok    bool
	}{
		{"index of a missing key", func() uint64 { return 7 }, "no", false},
		{"0 makes a key", func() uint64 { return 0 }, "one", true},
		{"0 on an existing key", func() uint64 { return 0 }, "no", false},
		{"a stale index", func() uint64 { return l.have("c").ModifyIndex - 1 }, "no", false},
		{"a future index", func() uint64 { return l.have("c").ModifyIndex + 1 }, "no", false},
		{"the index", func() uint64 { return l.have("c").ModifyIndex }, "two", true},
	} {
		got := strings.TrimSpace(l.must("PUT", fmt.Sprintf("%s?cas=%d", l.kv("c"), step.index()), step.value).body)
		want(l, step.name, got, fmt.Sprint(step.ok))
	}
	want(l, "value", string(l.have("c").Value), "two")
}

func indexes(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("i", "one")
	first := l.have("i")
	want(l, "first: modified is created", first.ModifyIndex, first.CreateIndex)
	l.put("i", "one")
	want(l, "the same value again is no write", l.have("i").ModifyIndex, first.ModifyIndex)
	l.must("PUT", l.kv("i")+"?flags=1", "one")
	flagged := l.have("i")
	if flagged.ModifyIndex <= first.ModifyIndex || flagged.CreateIndex != first.CreateIndex {
		l.Errorf("other flags: got %d/%d after %d/%d", flagged.CreateIndex, flagged.ModifyIndex, first.CreateIndex,
			first.ModifyIndex)
	}
	l.accept("two keys in one commit", l.set("x", "1"), l.set("y", "1"))
	want(l, "one commit, one index", l.have("x").ModifyIndex, l.have("y").ModifyIndex)
	l.must("DELETE", l.kv("i"), "")
	l.put("i", "again")
	if again := l.have("i"); again.CreateIndex <= flagged.ModifyIndex {
		l.Errorf("created again: got create index %d, want above %d", again.CreateIndex, flagged.ModifyIndex)
	}
}

func deletion(t *testing.T, s Server) {
	l := newLab(t, s)
	del := func(path string) string { l.Helper(); return strings.TrimSpace(l.must("DELETE", path, "").body) }
	l.put("d", "x")
	at := l.have("d").ModifyIndex
	want(l, "by a stale index", del(fmt.Sprintf("%s?cas=%d", l.kv("d"), at-1)), "false")
	want(l, "by 0", del(l.kv("d")+"?cas=0"), "false")
	want(l, "by its index", del(fmt.Sprintf("%s?cas=%d", l.kv("d"), at)), "true")
	want(l, "a missing key by an index", del(l.kv("d")+"?cas=99"), "true")
	want(l, "a missing key", del(l.kv("d")), "true")
	for _, name := range []string{"t", "t/a", "t/b/c", "tt", "u"} {
		l.put(name, "x")
	}
	want(l, "a subtree", del(l.kv("t/")+"?recurse"), "true")
	want(l, "what is left", l.names("", ""), "t tt u")
	want(l, "a prefix", del(l.kv("t")+"?recurse"), "true")
	want(l, "what is left", l.names("", ""), "u")
	want(l, "nothing", del(l.kv("t")+"?recurse"), "true")
}

func indexDoesNotFall(t *testing.T, s Server) {
	l := newLab(t, s)
	read := func() uint64 { l.Helper(); return l.do("GET", l.kv("f/")+"?keys", "").index }
	l.put("f/old", "x")
	l.put("f/new", "x")
	last := read()
	for _, step := range []func(){
		func() { l.must("DELETE", l.kv("f/new"), "") },
		func() { l.put("f/t/1", "x") },
		func() { l.must("DELETE", l.kv("f/t/")+"?recurse", "") },
		func() { l.accept("deletion", l.op(api.KVDelete, "f/old")) },
		func() { l.put("f/old", "x") },
	} {
		step()
		now := read()
		if now <= last {
			l.Errorf("index of the list: got %d after %d", now, last)
		}
		last = now
	}
	key := l.have("f/old").ModifyIndex
	l.must("DELETE", l.kv("f/old"), "")
	if now := l.do("GET", l.kv("f/old"), "").index; now <= key {
		l.Errorf("index of the deleted key: got %d, want above %d", now, key)
	}
}

func valueSizes(t *testing.T, s Server) {
	l := newLab(t, s)
	full := strings.Repeat("x", 524288)
	l.put("full", full)
	want(l, "the largest value comes back", l.must("GET", l.kv("full")+"?raw", "").body == full, true)
	want(l, "one byte more", l.do("PUT", l.kv("more"), full+"x").code, http.StatusRequestEntityTooLarge)
	l.gone("more")
}

func badRequests(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("b", "x")
	const none = "00000000-0000-0000-0000-000000000000"
	for _, c := range []struct {
		method, path string
		code         int
		text         string
	}{
		{"GET", "/v1/kv/", 400, "Missing key name"},
		{"PUT", "/v1/kv/", 400, "Missing key name"},
		{"DELETE", "/v1/kv/", 400, "Missing key name"},
		{"GET", l.kv("b") + "?wait=x", 400, "Invalid wait time"},
		{"GET", l.kv("b") + "?index=-1", 400, "Invalid index"},
		{"GET", l.kv("b") + "?stale&consistent", 400, "Cannot specify ?stale with ?consistent, conflicting semantics."},
		{"PUT", l.kv("b") + "?cas=1&acquire=" + none, 400, "Conflicting flags: acquire=" + none + "&cas=1"},
		{"DELETE", l.kv("b") + "?cas=1&recurse", 400, "Conflicting flags: cas=1&recurse="},
		{"PUT", l.kv("b") + "?cas=x", 500, `strconv.ParseUint: parsing "x": invalid syntax`},
		{"PUT", l.kv("b") + "?flags=x", 500, `strconv.ParseUint: parsing "x": invalid syntax`},
		{"PUT", l.kv("b") + "?acquire=" + none, 500, `raft apply failed: invalid session "` + none + `"`},
		{"PUT", l.kv("b") + "?acquire", 500, "raft apply failed: missing session"},
		{"PUT", l.kv("b") + "?release", 500, "raft apply failed: missing session"},
		{"POST", l.kv("b"), 405, "method POST not allowed"},
		{"GET", "/v1/txn", 405, "method GET not allowed"},
		{"GET", "/v1/session/create", 405, "method GET not allowed"},
		{"PUT", "/v1/session/renew/" + none, 404, "Session id '" + none + "' not found"},
		{"PUT", "/v1/session/renew/", 400, "Missing session"},
		{"PUT", "/v1/session/destroy/", 400, "Missing session"},
		{"GET", "/v1/session/info/", 400, "Missing session"},
	} {
		a := l.do(c.method, c.path, "v")
		want(l, c.method+" "+c.path, fmt.Sprint(a.code, " ", strings.TrimSpace(a.body)),
			fmt.Sprint(c.code, " ", c.text))
	}
	want(l, "nothing was written", string(l.have("b").Value), "x")
}

func self(t *testing.T, s Server) {
	l := newLab(t, s)
	leader, err := l.api.Status().Leader()
	if err != nil || leader == "" {
		l.Errorf("leader: got %q, %v", leader, err)
	}
	me, err := l.api.Agent().Self()
	if err != nil {
		l.Fatal(err)
	}
	for _, field := range []string{"Datacenter", "NodeName", "Version"} {
		if text, _ := me["Config"][field].(string); text == "" {
			l.Errorf("agent/self Config.%s: got %v, want a text", field, me["Config"][field])
		}
	}
}
