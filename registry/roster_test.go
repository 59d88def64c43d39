package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestClusterSpecLaw: whatever the order in which members join and acknowledge, the roster has the
// same bytes and the same ClusterSpec.
func TestClusterSpecLaw(t *testing.T) {
	var want registry.Packed
	for seed := range uint64(20) {
		g := newGang(t, asynchronous())
		g.settle()
		all := g.facts.Instances(g.dir)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, i := range all {
			g.join(i.String(), "inc-"+i.String(), "h"+i.String())
		}
		for _, i := range all {
			g.ack(i.String())
		}
		g.settle()
		p, err := registry.Pack(*g.roster)
		if err != nil {
			t.Fatal(err)
		}
		if seed == 0 {
			want = p
		}
		if !bytes.Equal(p.JSON, want.JSON) || !reflect.DeepEqual(p.Chunks, want.Chunks) || p.Ref != g.dir.Roster {
			t.Fatalf("order %v makes another roster:\n%s\n%s", all, p.JSON, want.JSON)
		}
		spec := map[string][]string{
			"ps": {"hps-0:2000"}, "worker": {"hworker-0:2000", "hworker-1:2001", "hworker-2:2002"}, "board": {"hboard-0:2000"},
		}
		if got := registry.ClusterSpec(*g.roster); !reflect.DeepEqual(got, spec) {
			t.Fatalf("got %v, want %v", got, spec)
		}
		rows := g.roster.Rows
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := registry.ClusterSpec(*g.roster); !reflect.DeepEqual(got, spec) {
			t.Fatalf("rows in another order: got %v, want %v", got, spec)
		}
	}
}

func ExampleClusterSpec() {
	r := registry.Roster{Rows: []registry.Row{
		{Instance: registry.Instance{Component: "worker", Index: 1}, Addr: "h2:2001"},
		{Instance: registry.Instance{Component: "ps", Index: 0}, Addr: "h1:2000"},
		{Instance: registry.Instance{Component: "worker", Index: 0}, Addr: "h1:2001"},
	}}
	fmt.Println(registry.ClusterSpec(r))
	// Output: map[ps:[h1:2000] worker:[h1:2001 h2:2001]]
}

func TestPackUnpack(t *testing.T) {
	r := registry.Roster{Version: 1, Run: "r", Gen: 3}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		r.Rows = append(r.Rows, registry.Row{
			Instance: registry.Instance{Component: "worker", Index: i}, Rank: i, Inc: fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()), Addr: fmt.Sprintf("h%d:2000", i),
		})
	}
	p, err := registry.Pack(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Ref.Chunks != len(p.Chunks) || len(p.Chunks) < 2 || p.Ref.ID[:2] != "3-" || len(p.Ref.ID) != 14 {
		t.Errorf("got ref %+v, %d chunks", p.Ref, len(p.Chunks))
	}
	for i, c := range p.Chunks {
		if len(c) > 350_000 || len(c) == 0 {
			t.Errorf("chunk %d has %d bytes", i, len(c))
		}
	}
	got, text, err := registry.Unpack(p.Ref, p.Chunks)
	if err != nil || !reflect.DeepEqual(got, r) || !bytes.Equal(text, p.JSON) {
		t.Fatalf("unpacked: %v", err)
	}
	other, err := registry.Pack(registry.Roster{Version: 1, Run: "r", Gen: 3, Rows: r.Rows[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.Unpack(p.Ref, other.Chunks); !errors.Is(err, registry.ErrRosterDiffers) {
		t.Errorf("another roster: got %v", err)
	}
	if _, _, err := registry.Unpack(other.Ref, p.Chunks); !errors.Is(err, registry.ErrRosterDiffers) {
		t.Errorf("a larger roster: got %v", err)
	}
	if _, _, err := registry.Unpack(p.Ref, p.Chunks[:1]); err == nil {
		t.Error("half a roster: got no error")
	}
}

func TestRank(t *testing.T) {
	f := factsOf(component("board", "service", 2, registry.ScopeInstance), component("chief", "chief", 1, registry.ScopeGang), component("worker", "worker", 3, registry.ScopeGang))
	d := registry.Directive{Counts: map[string]int{"worker": 2}}
	for i, name := range []string{"chief-0", "worker-0", "worker-1", "board-0", "board-1"} {
		if got := f.Rank(d, in(name)); got != i {
			t.Errorf("%s: got rank %d, want %d", name, got, i)
		}
		if got := f.Instances(d)[i]; got != in(name) {
			t.Errorf("rank %d: got %s, want %s", i, got, name)
		}
	}
	for _, name := range []string{"worker-2", "x-0"} {
		if got := f.Rank(d, in(name)); got != -1 {
			t.Errorf("%s: got rank %d, want -1", name, got)
		}
	}
	if got := f.World(d); got != 3 {
		t.Errorf("got world %d, want 3", got)
	}
}

func TestParseInstance(t *testing.T) {
	for _, tc := range []struct {
		text string
		want registry.Instance
		ok   bool
	}{
		{"worker-1", registry.Instance{Component: "worker", Index: 1}, true},
		{"a-b-12", registry.Instance{Component: "a-b", Index: 12}, true},
		{"worker", registry.Instance{}, false},
		{"-1", registry.Instance{}, false},
		{"worker-x", registry.Instance{}, false},
		{"worker--1", registry.Instance{Component: "worker-", Index: 1}, true},
	} {
		got, err := registry.ParseInstance(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%s: got %v, %v", tc.text, got, err)
		}
		if tc.ok && got.String() != tc.text {
			t.Errorf("%s prints as %s", tc.text, got)
		}
	}
}
