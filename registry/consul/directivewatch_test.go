package consul

import (
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

func pairOf(index uint64, session, run string, gen int, act registry.Act) *api.KVPair {
	return &api.KVPair{
		Key: "d", ModifyIndex: index, Session: session,
		Value: encode(registry.Directive{Run: run, Gen: gen, Act: act, Seq: int(index)}),
	}
}

// TestObserve goes through readings one after the other: what each is news of, and what stands then.
func TestObserve(t *testing.T) {
	const sure = -2 // the mark of now
	type reading struct {
		name  string
		pair  *api.KVPair
		mark  int
		want  news
		index uint64 // of the sighting afterwards
	}
	gone, back := "the directive has vanished", "the directive went back"
	s := newDirectiveWatch()
	for _, r := range []reading{
		{"nothing yet", nil, unsure, news{}, 0},
		{"first", pairOf(5, "c", "1", 1, "wait"), unsure, news{directive: true}, 5},
		{"the same", pairOf(5, "c", "1", 1, "wait"), unsure, news{}, 5},
		{"released", pairOf(7, "c", "1", 1, "run"), unsure, news{directive: true}, 7},
		{"an old answer", pairOf(5, "c", "1", 1, "wait"), unsure, news{doubt: true}, 7},
		{"a consistent one that was overtaken", pairOf(5, "c", "1", 1, "wait"), 1, news{}, 7},
		{"next generation", pairOf(9, "c", "1", 2, "wait"), unsure, news{directive: true}, 9},
		{"index fell", pairOf(8, "c", "1", 2, "wait"), unsure, news{doubt: true}, 9},
		{"index fell for sure", pairOf(8, "c", "1", 2, "wait"), sure, news{directive: true}, 8},
		{"another run in the same generation", pairOf(12, "c", "2", 2, "wait"), unsure, news{doubt: true}, 8},
		{"vanished", nil, unsure, news{doubt: true}, 8},
		{"vanished for sure", nil, sure, news{lost: gone}, 8},
		{"still", nil, sure, news{}, 8},
		{"founded anew", pairOf(2, "x", "1", 1, "wait"), sure, news{}, 8},
		{"a late answer", pairOf(9, "c", "1", 2, "run"), unsure, news{doubt: true}, 8},
		{"it is back", pairOf(8, "c", "1", 2, "wait"), sure, news{found: true}, 8},
		{"rolled back", pairOf(3, "c", "1", 1, "run"), sure, news{lost: back}, 8},
		{"a new run", pairOf(20, "c", "2", 3, "wait"), sure, news{directive: true, found: true}, 20},
	} {
		mark := r.mark
		if mark == sure {
			mark = s.mark()
		}
		got, err := s.observe("d", r.pair, mark)
		if err != nil || got != r.want {
			t.Errorf("%s: got %+v, %v, want %+v", r.name, got, err, r.want)
		}
		var index uint64
		if last, _, _ := s.now(); last != nil {
			index = last.index
		}
		if index != r.index {
			t.Errorf("%s: index %d stands, want %d", r.name, index, r.index)
		}
	}
	if _, err := s.observe("d", &api.KVPair{Value: []byte("{")}, unsure); err == nil {
		t.Error("a directive without JSON was taken")
	}
}

// TestObserveHandover: a conductor that steps down is not one whose session ends.
func TestObserveHandover(t *testing.T) {
	conducted := pairOf(5, "c", "1", 1, "run")
	conducted.Value = encode(registry.Directive{Run: "1", Gen: 1, Act: "run", By: "inc"})
	for by, want := range map[string]bool{"": true, "inc": false} {
		s := newDirectiveWatch()
		if _, err := s.observe("d", conducted, unsure); err != nil {
			t.Fatal(err)
		}
		released := pairOf(6, "", "1", 1, "run")
		released.Value = encode(registry.Directive{Run: "1", Gen: 1, Act: "run", By: by})
		if n, err := s.observe("d", released, unsure); err != nil || n.handed != want {
			t.Errorf("by %q: got %+v, %v", by, n, err)
		}
	}
}

// TestObserveSession: who conducts is no news for agents, and still wakes who waits to conduct.
func TestObserveSession(t *testing.T) {
	s := newDirectiveWatch()
	first := pairOf(5, "c", "1", 1, "wait")
	if _, err := s.observe("d", first, unsure); err != nil {
		t.Fatal(err)
	}
	_, _, changed := s.now()
	released := *first
	released.Session, released.ModifyIndex = "", 6
	n, err := s.observe("d", &released, unsure)
	if err != nil || n != (news{}) {
		t.Errorf("got %+v, %v", n, err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was woken")
	}
	if last, lost, _ := s.now(); !vacant(last, lost, "1") {
		t.Errorf("not vacant: %+v", last)
	}
}
