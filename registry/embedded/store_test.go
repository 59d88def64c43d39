package embedded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// filled is a store with these keys, each written by a request of its own.
func filled(t testing.TB, keys ...string) *keyStore {
	t.Helper()
	s := newKeyStore("node")
	for _, key := range keys {
		apply(t, s, start, operation{Verb: verbSet, Key: key, Value: []byte(key)})
	}
	return s
}

func apply(t testing.TB, s *keyStore, now time.Time, op operation) {
	t.Helper()
	if ok, _, err := s.apply(now, op); !ok || err != nil {
		t.Fatalf("%s %s: got %v, %v", op.Verb, op.Key, ok, err)
	}
}

func newSession(t testing.TB, s *keyStore, now time.Time, want sessionInfo) {
	t.Helper()
	want.Node = "node"
	if _, err := s.createSession(now, want); err != nil {
		t.Fatal(err)
	}
}

func TestSessionEndsAtTwiceItsTTL(t *testing.T) {
	s := newKeyStore("node")
	newSession(t, s, start, sessionInfo{ID: "a", TTL: "10s", Behavior: deleteKeys})
	newSession(t, s, at(time.Second), sessionInfo{ID: "b", TTL: "15s"})
	newSession(t, s, start, sessionInfo{ID: "endless"})
	for _, id := range []string{"a", "b", "endless"} {
		apply(t, s, start, operation{Verb: verbLock, Key: id, Session: id})
	}
	next, ok := s.next()
	if !ok || !next.Equal(at(20*time.Second)) {
		t.Errorf("next end: got %v, %v, want 20 s from the start", next.Sub(start), ok)
	}
	if ended, _ := s.expire(at(20*time.Second - 1)); ended != nil {
		t.Errorf("a nanosecond early: got %v ended", ended)
	}
	if s.renew(at(9*time.Second), "a") == nil {
		t.Error("renew: got none")
	}
	if ended, _ := s.expire(at(20 * time.Second)); ended != nil {
		t.Errorf("renewed at 9 s: got %v ended at 20 s", ended)
	}
	ended, touched := s.expire(at(time.Hour))
	if len(ended) != 2 || ended[0].ID != "a" || ended[1].ID != "b" {
		t.Errorf("ended: got %v, want a (29 s) before b (31 s)", ended)
	}
	if diff := cmp.Diff(changes{Keys: []string{"a", "b"}, Sessions: []string{"a", "b"}}, touched); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
	if _, ok := s.next(); ok {
		t.Error("a session without TTL has an end")
	}
	if e, _ := s.get("a"); e != nil {
		t.Error("delete: the key stays")
	}
	if e, _ := s.get("b"); e == nil || e.Session != "" {
		t.Errorf("release: got %v, want the key without its session", e)
	}
	if s.renew(at(time.Hour), "a") != nil {
		t.Error("renewed a session that has ended")
	}
}

func TestLockDelayLasts(t *testing.T) {
	for _, c := range []struct{ delay, lasts time.Duration }{
		{0, 0},
		{-time.Second, 0},
		{time.Millisecond, time.Millisecond},
		{15 * time.Second, 15 * time.Second},
		{time.Hour, maxLockDelay},
	} {
		s := newKeyStore("node")
		newSession(t, s, start, sessionInfo{ID: "a", LockDelay: c.delay})
		newSession(t, s, start, sessionInfo{ID: "b"})
		apply(t, s, start, operation{Verb: verbLock, Key: "k", Session: "a"})
		s.destroy(start, "a")
		if c.lasts > 0 {
			ok, _, err := s.apply(at(c.lasts-1), operation{Verb: verbLock, Key: "k", Session: "b"})
			if ok || err != nil {
				t.Errorf("%s: locked before its end: got %v, %v", c.delay, ok, err)
			}
		}
		apply(t, s, at(c.lasts), operation{Verb: verbLock, Key: "k", Session: "b"})
	}
}

func TestLockDelaysAreIndependent(t *testing.T) {
	s := newKeyStore("node")
	for _, id := range []string{"a", "b", "c"} {
		newSession(t, s, start, sessionInfo{ID: id, LockDelay: time.Minute})
		apply(t, s, start, operation{Verb: verbLock, Key: id, Session: id})
	}
	s.destroy(start, "a")
	s.destroy(at(59*time.Second), "b")
	ok, _, err := s.apply(at(59*time.Second), operation{Verb: verbLock, Key: "a", Session: "c"})
	if ok || err != nil {
		t.Errorf("the first delay, after another began: got %v, %v, want a refusal", ok, err)
	}
	apply(t, s, at(time.Minute), operation{Verb: verbLock, Key: "a", Session: "c"})
}

func TestLockDelaysAreForgotten(t *testing.T) {
	s := newKeyStore("node")
	for i := range 100 {
		id := fmt.Sprint(i)
		newSession(t, s, start, sessionInfo{ID: id, LockDelay: time.Millisecond})
		apply(t, s, start, operation{Verb: verbLock, Key: id, Session: id})
		s.destroy(at(time.Duration(i)*time.Second), id)
	}
	if got := len(s.delays); got != 1 {
		t.Errorf("delays kept: got %d, want the last one only", got)
	}
}

// TestTombstonesAreForgotten: the store does not grow with every key that ever was, and no index falls.
func TestTombstonesAreForgotten(t *testing.T) {
	s := filled(t, "keep/1")
	now := start
	last := map[string]uint64{}
	for i := range 1000 {
		now = now.Add(time.Minute)
		key := fmt.Sprintf("ready/%d/worker/0", i)
		apply(t, s, now, operation{Verb: verbSet, Key: key})
		apply(t, s, now, operation{Verb: verbDelete, Key: key})
		for _, prefix := range []string{"", "keep/", "ready/", "ready/1", "none/"} {
			_, index := s.list(prefix)
			if index < last[prefix] {
				t.Fatalf("index of %q fell from %d to %d in minute %d", prefix, last[prefix], index, i)
			}
			last[prefix] = index
		}
	}
	if got := len(s.graves.keys); got > 16 {
		t.Errorf("tombstones kept: got %d, want those of the last 15 minutes", got)
	}
}

func TestTouchedNamesWhatChanged(t *testing.T) {
	s := filled(t, "a", "b/1", "b/2")
	for _, c := range []struct {
		name string
		ops  []operation
		keys []string
	}{
		{"same value", []operation{{Verb: verbSet, Key: "a", Value: []byte("a")}}, nil},
		{"reads", []operation{{Verb: verbGet, Key: "a"}, {Verb: verbGetTree, Key: "b/"}, {Verb: verbCheckNotExists, Key: "c"}}, nil},
		{"delete of nothing", []operation{{Verb: verbDelete, Key: "c"}, {Verb: verbDeleteTree, Key: "c"}}, nil},
		{"refused", []operation{{Verb: verbSet, Key: "a", Value: []byte("x")}, {Verb: verbGet, Key: "c"}}, nil},
		{"write", []operation{{Verb: verbSet, Key: "a", Value: []byte("x")}}, []string{"a"}},
		{"tree", []operation{{Verb: verbDeleteTree, Key: "b/"}}, []string{"b/1", "b/2"}},
	} {
		_, before := s.list("")
		_, _, touched := s.txn(start, c.ops)
		if diff := cmp.Diff(c.keys, touched.Keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if _, after := s.list(""); (after > before) != (c.keys != nil) {
			t.Errorf("%s: index %d after %d", c.name, after, before)
		}
	}
}

// picture is all that can be seen of a store.
type picture struct {
	Entries  []*entry
	Lists    []uint64
	Sessions map[string]uint64
	Index    uint64
}

var prefixes = []string{"", "a", "a/", "a/b", "b", "zz"}

func look(s *keyStore) picture {
	p := picture{Sessions: map[string]uint64{}, Index: s.index}
	p.Entries, _ = s.list("")
	for _, prefix := range prefixes {
		_, index := s.list(prefix)
		p.Lists = append(p.Lists, index)
	}
	for id, l := range s.sessions {
		p.Sessions[id] = l.CreateIndex
	}
	return p
}

var verbs = []txnVerb{
	verbSet, verbCAS, verbLock, verbUnlock, verbGet, verbGetOrEmpty, verbGetTree, verbCheckIndex, verbCheckSession, verbCheckNotExists, verbDelete, verbDeleteCAS, verbDeleteTree, "steal",
}

func randomOp(r *rand.Rand, s *keyStore) operation {
	keys := []string{"a", "a/b", "a/b/c", "a/c", "b", "b/1", ""}
	op := operation{
		Verb:    verbs[r.IntN(len(verbs))],
		Key:     keys[r.IntN(len(keys))],
		Value:   []byte{byte(r.IntN(3))},
		Session: []string{"s", "t", ""}[r.IntN(3)],
		Index:   uint64(r.IntN(3)),
	}
	if e, _ := s.get(op.Key); e != nil && r.IntN(2) == 0 {
		op.Index = e.ModifyIndex
	}
	return op
}

// TestTxnLaws: whatever is sent, a refused transaction changes nothing that can be seen; an accepted
// one gives one new index to all that it changed, and no index falls.
func TestTxnLaws(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := newKeyStore("node")
		newSession(t, s, start, sessionInfo{ID: "s", Behavior: deleteKeys})
		newSession(t, s, start, sessionInfo{ID: "t", Behavior: releaseKeys})
		for step := range 40 {
			ops := make([]operation, 1+r.IntN(5))
			for i := range ops {
				ops[i] = randomOp(r, s)
			}
			before := look(s)
			results, refused, touched := s.txn(start, ops)
			after := look(s)
			where := fmt.Sprintf("seed %d step %d: %v", seed, step, ops)
			switch {
			case refused != nil:
				if diff := cmp.Diff(before, after); diff != "" || results != nil || touched.Keys != nil {
					t.Fatalf("%s: refused but changed (-before +after):\n%s", where, diff)
				}
			default:
				checkCommit(t, where, before, after, touched)
			}
			checkOrder(t, where, s)
		}
	}
}

func checkCommit(t *testing.T, where string, before, after picture, touched changes) {
	t.Helper()
	for i, index := range after.Lists {
		if index < before.Lists[i] {
			t.Fatalf("%s: index of %q fell from %d to %d", where, prefixes[i], before.Lists[i], index)
		}
	}
	for _, e := range after.Entries {
		changed := !slices.Contains(before.Entries, e)
		if changed && (e.ModifyIndex != after.Index || !slices.Contains(touched.Keys, e.Key)) {
			t.Fatalf("%s: %s changed: got index %d, want %d; touched %v", where, e.Key, e.ModifyIndex, after.Index, touched.Keys)
		}
	}
	for _, e := range before.Entries {
		gone := !slices.ContainsFunc(after.Entries, func(a *entry) bool { return a.Key == e.Key })
		if gone && !slices.Contains(touched.Keys, e.Key) {
			t.Fatalf("%s: %s went without being touched", where, e.Key)
		}
	}
}

func checkOrder(t *testing.T, where string, s *keyStore) {
	t.Helper()
	if !slices.IsSorted(s.entries.keys) || len(s.entries.keys) != len(s.entries.values) {
		t.Fatalf("%s: keys %v of %d values", where, s.entries.keys, len(s.entries.values))
	}
}

func TestKeysEqualsListCut(t *testing.T) {
	s := filled(t, "a", "a/b", "a/b/c", "a/d", "ab", "b//c")
	for _, c := range []struct{ prefix, separator, names string }{
		{"", "", "a a/b a/b/c a/d ab b//c"},
		{"", "/", "a a/ ab b/"},
		{"a/", "/", "a/b a/b/ a/d"},
		{"a", "/", "a a/ ab"},
		{"b", "//", "b//"},
		{"c", "/", ""},
	} {
		names, _ := s.keys(c.prefix, c.separator)
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("keys of %q by %q: got %q, want %q", c.prefix, c.separator, got, c.names)
		}
	}
}
