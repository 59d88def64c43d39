package consulhttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

// protocol goes through the life of a gang with the transactions that the gang protocol is made of,
// T1 to T16, in the shapes it sends them: each once accepted, and refused where it must be.
func protocol(t *testing.T, s Server) {
	l := newLab(t, s)
	c1 := protocolFound(l)
	a, record := protocolClaim(l)
	protocolSeal(l, c1)
	c2 := protocolElect(l, c1)
	a, record = protocolLose(l, c2, a, record)
	record = protocolReport(l, a, record)
	protocolCheckpoint(l, a, record)
	protocolEnd(l, c2)
	protocolLeave(l, a)
}

func (l *lab) at(name string) uint64 { l.Helper(); return l.have(name).ModifyIndex }

func protocolFound(l *lab) (conductor string) {
	looked := l.accept("T1 look",
		l.op(api.KVGetOrEmpty, "app"), l.op(api.KVGetOrEmpty, "directive"),
		l.op(api.KVGetOrEmpty, "members/worker/0"), l.op(api.KVGetOrEmpty, "live/worker/0"))
	for _, p := range looked {
		want(l, "T1 sees nothing", fmt.Sprintf("%d %q %q", p.ModifyIndex, p.Session, p.Value), `0 "" ""`)
	}
	want(l, "T1 answers", len(looked), 4)
	conductor = l.session("release", "1ms")
	found := []*api.KVTxnOp{
		l.cas("app", 0, `{"run":"1"}`), l.cas("directive", 0, `{"gen":1,"act":"wait"}`),
		l.lock("directive", conductor, `{"gen":1,"act":"wait"}`),
	}
	l.accept("T2 found", found...)
	l.refuse("T2 again", `0: failed to set key "app", index is stale; 1: failed to set key "directive", index is stale`,
		found...)
	want(l, "T2 conducts", l.have("directive").Session, conductor)
	return conductor
}

func protocolClaim(l *lab) (session string, record uint64) {
	session = l.session("delete", "1ms")
	claim := func(by, inc string) []*api.KVTxnOp {
		return []*api.KVTxnOp{
			l.checkIndex("directive", l.at("directive")), l.op(api.KVCheckNotExists, "members/worker/0"),
			l.op(api.KVCheckNotExists, "live/worker/0"), l.lock("live/worker/0", by, inc),
			l.cas("members/worker/0", 0, `{"inc":"`+inc+`","ph":"joined"}`), l.op(api.KVGet, "directive"),
		}
	}
	got := l.accept("T3 claim", claim(session, "a")...)
	want(l, "T3 reads the directive in the same commit", string(got[len(got)-1].Value), `{"gen":1,"act":"wait"}`)
	record = got[2].ModifyIndex
	want(l, "T3 answers the record's index", record, l.at("members/worker/0"))
	l.refuse("T3 of another", `1: key "members/worker/0" exists; 2: key "live/worker/0" exists; `+
		`3: failed to lock key "live/worker/0", lock is already held; `+
		`4: failed to set key "members/worker/0", index is stale`,
		claim(l.session("delete", "1ms"), "b")...)
	acknowledge := []*api.KVTxnOp{
		l.checkSession("live/worker/0", session), l.cas("members/worker/0", record, `{"inc":"a","gen":1,"ph":"ready"}`),
		l.lock("ready/1/worker/0", session, ""), l.op(api.KVDelete, "ready/0/worker/0"),
	}
	record = l.accept("T4 acknowledge", acknowledge...)[1].ModifyIndex
	l.refuse("T4 twice", `1: failed to set key "members/worker/0", index is stale`, acknowledge...)
	record = l.accept("T4b again", l.checkSession("live/worker/0", session),
		l.cas("members/worker/0", record, `{"inc":"a","gen":1,"ph":"ready","again":1}`),
		l.lock("ready/1/worker/0", session, ""), l.op(api.KVDelete, "ready/0/worker/0"),
		l.checkIndex("directive", l.at("directive")))[1].ModifyIndex
	return session, record
}

func protocolSeal(l *lab, c1 string) {
	old := l.at("directive")
	waiter := l.read(fmt.Sprintf("%s?index=%d&wait=60s", l.kv("directive"), old))
	seal := []*api.KVTxnOp{
		l.checkSession("directive", c1), l.checkIndex("directive", old),
		l.cas("roster/1-abc/0", 0, "gz"), l.lock("directive", c1, `{"gen":1,"act":"run"}`),
	}
	l.accept("T5 seal", seal...)
	var seen []api.KVPair
	l.decode(l.answered(waiter).body, &seen)
	want(l, "T5 wakes who waits", string(seen[0].Value), `{"gen":1,"act":"run"}`)
	want(l, "T5 keeps the lock", seen[0].Session, c1)
	want(l, "the roster", l.must("GET", l.kv("roster/1-abc/0")+"?raw&stale", "").body, "gz")
	l.refuse("T5 twice", fmt.Sprintf(`1: failed index check for key "directive", current modify index %d != %d; `+
		`2: failed to set key "roster/1-abc/0", index is stale`, l.at("directive"), old), seal...)
}

func protocolElect(l *lab, c1 string) (c2 string) {
	held := l.at("directive")
	waiter := l.read(fmt.Sprintf("%s?index=%d&wait=60s", l.kv("directive"), held))
	l.destroy(c1)
	var seen []api.KVPair
	l.decode(l.answered(waiter).body, &seen)
	want(l, "nobody conducts", seen[0].Session, "")
	want(l, "the directive is kept", string(seen[0].Value), `{"gen":1,"act":"run"}`)
	c2 = l.session("release", "1ms")
	l.acceptLater("T6 elect", l.checkIndex("directive", seen[0].ModifyIndex),
		l.lock("directive", c2, `{"gen":1,"act":"run","by":2}`))
	l.refuse("T6 of another", fmt.Sprintf(`0: failed index check for key "directive", current modify index %d != %d; `+
		`1: failed to lock key "directive", lock is already held`, l.at("directive"), seen[0].ModifyIndex),
		l.checkIndex("directive", seen[0].ModifyIndex), l.lock("directive", l.session("release", "1ms"), "mine"))
	return c2
}

func protocolLose(l *lab, c2, a string, record uint64) (string, uint64) {
	lose := func() []*api.KVTxnOp {
		return []*api.KVTxnOp{
			l.checkSession("directive", c2), l.op(api.KVCheckNotExists, "live/worker/0"),
			l.cas("members/worker/0", record, `{"inc":"a","ph":"lost"}`),
		}
	}
	l.refuse("T7 of a live member", `1: key "live/worker/0" exists`, lose()...)
	l.destroy(a) // T8
	l.gone("live/worker/0", "ready/1/worker/0")
	want(l, "T8 leaves the record", l.at("members/worker/0"), record)
	back := l.session("delete", "1ms")
	l.acceptLater("T9 re-attach", l.checkIndex("members/worker/0", record), l.lock("live/worker/0", back, "a"),
		l.lock("ready/1/worker/0", back, ""))
	l.destroy(back)
	lost := l.accept("T7 lost", lose()...)[1].ModifyIndex
	l.acceptLaterRefused("T9 after lost", `0: failed index check for key "members/worker/0"`,
		l.checkIndex("members/worker/0", record), l.lock("live/worker/0", l.session("delete", "1ms"), "a"))
	l.gone("live/worker/0")
	b := l.session("delete", "1ms")
	got := l.acceptLater("T3 by a replacement, T4 with it",
		l.checkIndex("directive", l.at("directive")), l.checkIndex("members/worker/0", lost),
		l.op(api.KVCheckNotExists, "live/worker/0"),
		l.lock("live/worker/0", b, "b"), l.cas("members/worker/0", lost, `{"inc":"b","gen":1,"ph":"ready"}`),
		l.lock("ready/1/worker/0", b, ""), l.op(api.KVGet, "directive"))
	return b, got[3].ModifyIndex
}

// acceptLaterRefused waits for the lock delay like acceptLater, for a transaction that is then refused.
func (l *lab) acceptLaterRefused(what, reason string, ops ...*api.KVTxnOp) {
	l.Helper()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for ; l.ctx.Err() == nil; <-retry.C {
		ok, resp := l.txn(ops...)
		why := l.reasons(resp)
		if ok || !strings.Contains(why, "lock delay") {
			if !strings.HasPrefix(why, reason) {
				l.Errorf("%s: got %q, want %q", what, why, reason)
			}
			return
		}
	}
}

func protocolReport(l *lab, b string, record uint64) uint64 {
	record = l.accept("T10b restarted in place", l.checkSession("live/worker/0", b),
		l.cas("members/worker/0", record, `{"attempt":2}`))[1].ModifyIndex
	stranger := l.session("delete", "1ms")
	l.refuse("T10 of a stranger",
		fmt.Sprintf(`0: failed session check for key "live/worker/0", current session %q != %q`, b, stranger),
		l.checkSession("live/worker/0", stranger), l.cas("members/worker/0", record,
			`{"ph":"failed"}`), l.op(api.KVDelete, "ready/1/worker/0"))
	record = l.accept("T10 report", l.checkSession("live/worker/0", b),
		l.cas("members/worker/0", record, `{"ph":"failed"}`),
		l.op(api.KVDelete, "ready/1/worker/0"))[1].ModifyIndex
	l.gone("ready/1/worker/0")
	return record
}

func protocolCheckpoint(l *lab, b string, record uint64) {
	commit := func(index uint64) []*api.KVTxnOp {
		return []*api.KVTxnOp{
			l.checkSession("live/worker/0", b), l.checkIndex("members/worker/0", index),
			l.cas("checkpoint/worker/0", 0, `{"step":1}`),
		}
	}
	l.refuse("T13 in flight since before the last acknowledgement",
		fmt.Sprintf(`1: failed index check for key "members/worker/0", current modify index %d != %d`, record,
			record-1), commit(record-1)...)
	l.accept("T13 checkpoint", commit(record)...)
}

func protocolEnd(l *lab, c2 string) {
	old := l.at("directive")
	l.accept("T11 rebuild", l.checkSession("directive", c2), l.checkIndex("directive", old),
		l.lock("directive", c2, `{"gen":2,"act":"wait"}`))
	l.put("ask/stop/1", "{}")
	verdict := func(outcome string) []*api.KVTxnOp {
		return []*api.KVTxnOp{
			l.checkSession("directive", c2), l.checkIndex("directive", l.at("directive")),
			l.cas("verdict/1", 0, outcome),
			l.lock("directive", c2, `{"gen":2,"act":"stop"}`), l.op(api.KVDelete, "ask/stop/1"),
		}
	}
	l.accept("T12 verdict", verdict("stopped")...)
	l.gone("ask/stop/1")
	l.refuse("T12 again", `2: failed to set key "verdict/1", index is stale`, verdict("failed")...)
	want(l, "the verdict", string(l.have("verdict/1").Value), "stopped")
	newRun := []*api.KVTxnOp{
		l.checkSession("directive", c2), l.checkIndex("directive", l.at("directive")),
		l.cas("app", l.at("app"), `{"run":"2"}`),
		l.lock("directive", c2, `{"run":"2","gen":3,"act":"wait"}`),
	}
	l.accept("T15 new run", newRun...)
	old = l.at("directive")
	l.accept("T16 step down", l.checkIndex("directive", old),
		l.unlock("directive", c2, `{"run":"2","gen":3,"act":"wait"}`))
	next := l.session("release", "1ms")
	l.accept("T6 at once after T16", l.checkIndex("directive", l.at("directive")),
		l.lock("directive", next, `{"run":"2","gen":3,"act":"wait","by":3}`))
	l.refuse("T15 by a conductor of before",
		fmt.Sprintf(`0: failed session check for key "directive", current session %q != %q; `+
			`1: failed index check for key "directive", current modify index %d != %d; `+
			`2: failed to set key "app", index is stale; `+
			`3: failed to lock key "directive", lock is already held`,
			next, c2, l.at("directive"), newRun[1].Index), newRun...)
}

func protocolLeave(l *lab, b string) {
	l.accept("T14 leave", l.checkSession("live/worker/0", b),
		l.cas("members/worker/0", l.at("members/worker/0"), `{"ph":"left"}`),
		l.op(api.KVDelete, "ready/3/worker/0"), l.op(api.KVDelete, "live/worker/0"))
	l.destroy(b)
	a := l.do("GET", l.kv("live/")+"?keys", "")
	want(l, "nobody is live", a.code, http.StatusNotFound)
	want(l, "the record stays", string(l.have("members/worker/0").Value), `{"ph":"left"}`)
}
