package consulhttp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
)

// txnVerbs checks what each verb answers and leaves.
func txnVerbs(t *testing.T, s Server) {
	l := newLab(t, s)
	a := l.session("release", "1ms")
	show := func(pairs []*api.KVPair) string {
		var texts []string
		for _, p := range pairs {
			texts = append(texts, fmt.Sprintf("%s=%s", strings.TrimPrefix(p.Key, l.prefix), p.Value))
		}
		return strings.Join(texts, " ")
	}
	made := l.accept("set", l.set("a", "1"))
	want(l, "set", show(made), "a=")
	index := made[0].ModifyIndex
	want(l, "set answers the index", l.have("a").ModifyIndex, index)
	want(l, "get", show(l.accept("get", l.op(api.KVGet, "a"))), "a=1")
	want(l, "get-or-empty", show(l.accept("get-or-empty", l.op(api.KVGetOrEmpty, "a"))), "a=1")
	empty := l.accept("get-or-empty of nothing", l.op(api.KVGetOrEmpty, "no"))
	want(l, "get-or-empty of nothing", show(empty), "no=")
	want(l, "its indexes", fmt.Sprint(empty[0].CreateIndex, empty[0].ModifyIndex), "0 0")
	want(l, "check-index", show(l.accept("check-index", l.checkIndex("a", index))), "a=")
	want(l, "check-session of no lock", show(l.accept("check-session", l.checkSession("a", ""))), "a=")
	want(l, "check-not-exists", show(l.accept("check-not-exists", l.op(api.KVCheckNotExists, "no"))), "")
	want(l, "cas", show(l.accept("cas", l.cas("a", index, "2"))), "a=")
	locked := l.accept("lock", l.lock("a", a, "3"))
	want(l, "lock answers the holder", locked[0].Session, a)
	l.accept("check-session", l.checkSession("a", a))
	want(l, "unlock", l.accept("unlock", l.unlock("a", a, "4"))[0].Session, "")
	want(l, "value of the unlock", string(l.have("a").Value), "4")
	l.accept("more", l.set("t/1", "x"), l.set("t/2", "y"))
	want(l, "get-tree", show(l.accept("get-tree", l.op(api.KVGetTree, "t/"))), "t/1=x t/2=y")
	want(l, "get-tree of nothing", show(l.accept("get-tree", l.op(api.KVGetTree, "u/"))), "")
	want(l, "delete", show(l.accept("delete", l.op(api.KVDelete, "t/1"), l.op(api.KVDelete, "t/1"))), "")
	stale := l.op(api.KVDeleteCAS, "t/2")
	stale.Index = l.have("t/2").ModifyIndex
	l.accept("delete-cas", stale, l.op(api.KVDeleteCAS, "t/missing"))
	l.gone("t/1", "t/2")
	l.put("t/3", "")
	l.accept("delete-tree", l.op(api.KVDeleteTree, "t/"), l.op(api.KVDeleteTree, "t/"))
	l.gone("t/3")
	flagged := l.set("flags", "x")
	flagged.Flags = 99
	want(l, "flags", l.accept("flags", flagged)[0].Flags, 99)
}

func txnRefused(t *testing.T, s Server) {
	l := newLab(t, s)
	a, b := l.session("release", "1ms"), l.session("release", "1ms")
	l.accept("set up", l.set("k", "x"), l.lock("held", a, "x"))
	index := l.have("k").ModifyIndex
	deleteCAS := l.op(api.KVDeleteCAS, "k")
	deleteCAS.Index = index - 1
	noKey := &api.KVTxnOp{Verb: api.KVSet}
	for _, c := range []struct {
		op   *api.KVTxnOp
		what string
	}{
		{l.op(api.KVGet, "no"), `key "no" doesn't exist`},
		{l.cas("k", 0, ""), `failed to set key "k", index is stale`},
		{l.cas("k", index-1, ""), `failed to set key "k", index is stale`},
		{l.cas("no", index, ""), `failed to set key "no", index is stale`},
		{l.checkIndex("k", 0), fmt.Sprintf(`failed index check for key "k", current modify index %d != 0`, index)},
		{l.checkIndex("k", index-1), fmt.Sprintf(`failed index check for key "k", current modify index %d != %d`, index,
			index-1)},
		{l.checkIndex("no", 0), `failed to check index, key "no" doesn't exist`},
		{l.checkSession("held", b), fmt.Sprintf(`failed session check for key "held", current session %q != %q`, a, b)},
		{l.checkSession("held", ""), fmt.Sprintf(`failed session check for key "held", current session %q != ""`, a)},
		{l.checkSession("no", b), `failed to check session, key "no" doesn't exist`},
		{l.op(api.KVCheckNotExists, "k"), `key "k" exists`},
		{deleteCAS, `failed to delete key "k", index is stale`},
		{l.lock("held", b, ""), `failed to lock key "held", lock is already held`},
		{l.unlock("held", b, ""), `failed to unlock key "held", lock isn't held, or is held by another session`},
		{l.unlock("no", b, ""), `failed to unlock key "no", lock isn't held, or is held by another session`},
		{l.unlock("held", "", ""), `missing session`},
		{l.op("steal", "k"), `unknown KV verb "steal"`},
		{noKey, `Must provide key`},
	} {
		what := fmt.Sprintf("%s %s", c.op.Verb, strings.TrimPrefix(c.op.Key, l.prefix))
		l.refuse(what, "0: "+c.what, c.op)
		if c.op != noKey { // which is refused before anything is looked at
			l.refuse(what+" beside others", "1: "+c.what+`; 2: key "lost" doesn't exist`, l.set("new", "x"), c.op,
				l.op(api.KVGet, "lost"))
		}
	}
	l.gone("new", "no")
	want(l, "k is as it was", l.have("k").ModifyIndex, index)
}

func txnWhole(t *testing.T, s Server) {
	l := newLab(t, s)
	a := l.session("delete", "1ms")
	l.accept("set up", l.set("kept", "old"), l.set("tree/1", "old"), l.lock("locked", a, "old"))
	before := l.must("GET", l.kv("")+"?recurse", "").body
	l.refuse("everything undone", `7: key "never" doesn't exist`,
		l.set("kept", "new"), l.set("made", "new"), l.op(api.KVDeleteTree, "tree/"), l.set("tree/2", "new"),
		l.unlock("locked", a, "new"), l.op(api.KVDelete, "kept"), l.lock("kept", a, "newer"), l.op(api.KVGet, "never"))
	want(l, "the tree", l.must("GET", l.kv("")+"?recurse", "").body, before)
	l.refuse("created keys are no longer there", `0: key "made" doesn't exist`, l.op(api.KVGet, "made"))

	got := l.accept("later operations see earlier ones",
		l.op(api.KVDelete, "kept"), l.op(api.KVCheckNotExists, "kept"), l.cas("kept", 0, "second life"),
		l.op(api.KVGet, "kept"),
		l.lock("kept", a, "third"), l.checkSession("kept", a), l.op(api.KVGetTree, "tree/"))
	want(l, "results", len(got), 5) // delete and check-not-exists answer nothing
	want(l, "get within", string(got[1].Value), "second life")
	want(l, "afterwards", string(l.have("kept").Value), "third")
}

func txnLimits(t *testing.T, s Server) {
	l := newLab(t, s)
	many := make([]*api.KVTxnOp, 128)
	for i := range many {
		many[i] = l.set("n/"+strconv.Itoa(i), "x")
	}
	want(l, "128 operations", len(l.accept("128 operations", many...)), 128)
	one := `{"KV":{"Verb":"set","Key":"` + l.k("many") + `","Value":""}}`
	a := l.do("PUT", "/v1/txn", "["+strings.Repeat(one+",", 128)+one+"]")
	want(l, "129 operations", fmt.Sprint(a.code, " ", a.body),
		"413 Transaction contains too many operations (129 > 128)")

	whole := func(size int) string {
		head, tail := `[{"KV":{"Verb":"set","Key":"`+l.k("big")+`","Value":"`, `"}}]`
		fill := size - len(head) - len(tail)
		spaces := fill % 4
		return head + strings.Repeat("eHh4", fill/4) + tail + strings.Repeat(" ", spaces)
	}
	want(l, "a body of 512 KB", l.do("PUT", "/v1/txn", whole(512<<10)).code, http.StatusOK)
	want(l, "a byte more", l.do("PUT", "/v1/txn", whole(512<<10+1)).code, http.StatusRequestEntityTooLarge)
	l.gone("many")
}

func txnBadBody(t *testing.T, s Server) {
	l := newLab(t, s)
	for body, text := range map[string]string{
		``:                                    "Failed to parse body: EOF",
		`[{"KV":`:                             "Failed to parse body: unexpected EOF",
		`[{"KV":{"Verb":"set","Verbs":"x"}}]`: `Failed to parse body: json: unknown field "Verbs"`,
		`[{"Value":{}}]`:                      `Failed to parse body: json: unknown field "Value"`,
		`[{"KV":{"Verb":"set","Key":"k","Value":"?"}}]`: "Failed to parse body: illegal base64 data at input byte 0",
	} {
		a := l.do("PUT", "/v1/txn", body)
		want(l, body, fmt.Sprint(a.code, " ", a.body), "400 "+text)
	}
	for _, body := range []string{`{}`, `"x"`, `[{"KV":{"Index":-1}}]`, `[{"KV":{"Key":1}}]`, `[[]]`} {
		want(l, body, l.do("PUT", "/v1/txn", body).code, http.StatusBadRequest)
	}
	for _, body := range []string{`[]`, `null`, `[{}]`} {
		a := l.must("PUT", "/v1/txn", body)
		var got struct{ Results, Errors []any }
		l.decode(a.body, &got)
		want(l, body, len(got.Results)+len(got.Errors), 0)
	}
}

// oneFounder: of many who found an app, and then claim an index, one succeeds.
func oneFounder(t *testing.T, s Server) {
	l := newLab(t, s)
	const many = 16
	sessions := make([]string, many)
	for i := range sessions {
		sessions[i] = l.session("delete", "1ms")
	}
	var wins [many]bool
	var done sync.WaitGroup
	for i, id := range sessions {
		done.Go(func() {
			ops := []*api.KVTxnOp{l.op(api.KVCheckNotExists, "live"), l.lock("live", id, id), l.cas("members", 0, id)}
			wins[i], _ = l.txn(ops...)
		})
	}
	done.Wait()
	winners := 0
	for i, won := range wins {
		if won {
			winners++
			want(l, "the winner's record", string(l.have("members").Value), sessions[i])
			want(l, "the winner's lock", l.have("live").Session, sessions[i])
		}
	}
	want(l, "winners", winners, 1)
}

// casCounter: no write is lost and none is done twice.
func casCounter(t *testing.T, s Server) {
	l := newLab(t, s)
	l.put("n", "0")
	const writers, times = 4, 8
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for added := 0; added < times && l.ctx.Err() == nil; {
				p := l.get("n")
				n, _ := strconv.Atoi(string(p.Value))
				if ok, _ := l.txn(l.cas("n", p.ModifyIndex, strconv.Itoa(n+1))); ok {
					added++
				}
			}
		})
	}
	done.Wait()
	want(l, "sum", string(l.have("n").Value), strconv.Itoa(writers*times))
}
