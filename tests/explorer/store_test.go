//go:build !race

package explorer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry/embedded"
)

// TestStore: the explorer's store answers random transactions as the embedded registry does.
func TestStore(t *testing.T) {
	for seed := range uint64(30) {
		same(t, rand.New(rand.NewPCG(seed, 2)))
	}
}

// same sends both stores the same requests.
func same(t *testing.T, r *rand.Rand) {
	t.Helper()
	server := embedded.New(embedded.Options{})
	defer server.Close()
	other := realStore{t: t, h: server.Handler(), ids: map[string]string{}, indexes: map[uint64]uint64{}}
	s := newStore()
	sessions := []string{"none"}
	var story []string
	for range 120 {
		switch r.IntN(10) {
		case 0:
			id := fmt.Sprint("s", len(sessions))
			deletes := r.IntN(2) == 0
			s.Sessions[id] = lease{Deletes: deletes}
			sessions = append(sessions, id)
			other.create(id, deletes)
		case 1:
			id := sessions[r.IntN(len(sessions))]
			s.end(id)
			other.destroy(id)
			story = append(story, "end "+id)
		default:
			ops := randomOps(r, s, sessions)
			next, refused := s.commit(ops)
			if got := other.commit(ops); got != (refused == "") {
				t.Fatalf("%+v: the embedded registry did it: %v, the store: %q", ops, got, refused)
			}
			s = next
			story = append(story, fmt.Sprintf("%+v %s", ops, refused))
		}
		if want, got := other.text(), textOf(s); want != got {
			t.Fatalf("the embedded registry has\n%s\nthe store\n%s\nafter %s", want, got, strings.Join(story, "\n"))
		}
		other.learn(s)
	}
}

func randomOps(r *rand.Rand, s store, sessions []string) []op {
	keys := []string{"a/1", "a/2", "b"}
	verbs := []string{
		verbCAS, verbSet, verbLock, verbUnlock, verbIndex, verbSession, verbAbsent, verbDelete, verbDeleteTree, verbGet,
	}
	var ops []op
	for range 1 + r.IntN(3) {
		o := op{Verb: verbs[r.IntN(len(verbs))], Key: keys[r.IntN(len(keys))]}
		e := s.Keys[o.Key]
		switch o.Verb {
		case verbCAS, verbIndex:
			if o.Index = e.Index; r.IntN(4) == 0 {
				o.Index = 0
			}
		case verbSession, verbUnlock:
			if o.Session = e.Session; r.IntN(4) == 0 || o.Session == "" {
				o.Session = sessions[r.IntN(len(sessions))]
			}
		case verbLock:
			o.Session = sessions[r.IntN(len(sessions))]
		case verbDeleteTree:
			o.Key = "a/"
		}
		if o.Verb == verbCAS || o.Verb == verbSet || o.Verb == verbLock || o.Verb == verbUnlock {
			o.Value = fmt.Sprint(r.IntN(3))
		}
		ops = append(ops, o)
	}
	return ops
}

// textOf is a store without the numbers of its indexes: their order remains.
func textOf(s store) string {
	var lines []string
	var order []uint64
	for _, e := range s.Keys {
		order = append(order, e.Index)
	}
	slices.Sort(order)
	order = slices.Compact(order)
	for _, k := range slices.Sorted(maps.Keys(s.Keys)) {
		e := s.Keys[k]
		at, _ := slices.BinarySearch(order, e.Index)
		lines = append(lines, fmt.Sprintf("%s=%v lock %q index %d", k, e.Value, e.Session, at))
	}
	return strings.Join(lines, "\n")
}

// realStore is the embedded registry, with the names and indexes of the explorer's store.
type realStore struct {
	t       *testing.T
	h       http.Handler
	ids     map[string]string // session → id
	indexes map[uint64]uint64 // the store's → the registry's
}

func (r *realStore) send(method, target, body string, into any) int {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	if into != nil && w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			r.t.Fatal(err)
		}
	}
	return w.Code
}

func (r *realStore) create(id string, deletes bool) {
	behavior := map[bool]string{true: "delete", false: "release"}[deletes]
	var out struct{ ID string }
	r.send(http.MethodPut, "/v1/session/create", `{"Behavior":"`+behavior+`","LockDelay":"0s","NodeChecks":[]}`, &out)
	r.ids[id] = out.ID
}

func (r *realStore) destroy(id string) {
	if other, ok := r.ids[id]; ok {
		r.send(http.MethodPut, "/v1/session/destroy/"+other, "", nil)
	}
}

func (r *realStore) commit(ops []op) bool {
	type kv struct {
		Verb, Key, Value, Session string
		Index                     uint64
	}
	var body []map[string]kv
	for _, o := range ops {
		x := kv{Verb: o.Verb, Key: o.Key, Session: o.Session, Index: r.indexes[o.Index]}
		if id, ok := r.ids[o.Session]; ok {
			x.Session = id
		} else if o.Session != "" {
			x.Session = "11111111-1111-1111-1111-111111111111"
		}
		if o.Value != nil {
			x.Value = base64.StdEncoding.EncodeToString([]byte(o.Value.(string)))
		}
		body = append(body, map[string]kv{"KV": x})
	}
	text, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	switch code := r.send(http.MethodPut, "/v1/txn", string(text), nil); code {
	case http.StatusOK:
		return true
	case http.StatusConflict:
		return false
	default:
		r.t.Fatalf("%s: got %d", text, code)
		return false
	}
}

func (r *realStore) read() store {
	var list []struct {
		Key, Session string
		Value        []byte
		ModifyIndex  uint64
	}
	r.send(http.MethodGet, "/v1/kv/?recurse", "", &list)
	names := map[string]string{}
	for name, id := range r.ids {
		names[id] = name
	}
	s := newStore()
	for _, e := range list {
		s.Keys[e.Key] = entry{Value: string(e.Value), Session: names[e.Session], Index: e.ModifyIndex}
	}
	return s
}

func (r *realStore) text() string {
	return textOf(r.read())
}

// learn remembers which indexes belong together.
func (r *realStore) learn(s store) {
	now := r.read()
	for k, e := range s.Keys {
		r.indexes[e.Index] = now.Keys[k].Index
	}
}
