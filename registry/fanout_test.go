package registry_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestTreeOfRanks: every rank gets the roster by at most four hops, from a rank before it that serves no more than
// FanOut others.
func TestTreeOfRanks(t *testing.T) {
	for _, world := range []int{1, 16, 17, 272, 273, 1000, 10_000, 100_000} {
		served := map[int]int{}
		for rank := range world {
			parent, ok := registry.Parent(rank)
			if seed := rank < registry.FanOut; ok == seed {
				t.Fatalf("rank %d: has a parent: %v", rank, ok)
			}
			if !ok {
				continue
			}
			if parent < 0 || parent >= rank || !registry.Serves(parent, world) {
				t.Fatalf("rank %d of %d has the parent %d", rank, world, parent)
			}
			if got, want := registry.Level(rank), registry.Level(parent)+1; got != want || got > 4 {
				t.Fatalf("rank %d is on level %d, its parent on %d", rank, got, want-1)
			}
			served[parent]++
		}
		for rank := range world {
			if n := served[rank]; n > registry.FanOut || (n > 0) != registry.Serves(rank, world) && rank >= registry.FanOut {
				t.Fatalf("rank %d of %d serves %d", rank, world, n)
			}
		}
	}
}

// TestRosterSources: a rank below the seeds is served by the seed that it asks; a seed sends others to their parents.
func TestRosterSources(t *testing.T) {
	r := rosterOf(1000)
	packed, err := registry.Pack(r)
	if err != nil {
		t.Fatal(err)
	}
	ref := packed.Ref
	ref.Seeds = r.Seeds()
	sources, err := ref.Sources(bytes.Join(packed.Chunks, nil))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(ref.Seeds)); n != registry.FanOut {
		t.Fatalf("%d seeds, want %d", n, registry.FanOut)
	}
	asked := map[string]int{}
	for rank := range r.Rows {
		seed := ref.Seed(rank, 0)
		if (seed == "") != (rank < registry.FanOut) {
			t.Fatalf("rank %d asks %q", rank, seed)
		}
		if again := ref.Seed(rank, 1); again == seed && seed != "" {
			t.Fatalf("rank %d asks %q twice", rank, seed)
		}
		asked[seed]++
		parent, _ := registry.Parent(rank)
		want := ""
		if registry.Level(rank) > 1 {
			want = r.Rows[parent].Peer
		}
		if got := sources.Of(rank); got != want {
			t.Fatalf("rank %d is sent to %q, want %q", rank, got, want)
		}
	}
	for seed, n := range asked {
		if n > len(r.Rows)/registry.FanOut+1 {
			t.Errorf("%d ranks ask %q", n, seed)
		}
	}
	r.Rows[3].Peer, r.Rows[4].Done = "", true
	if n := len(strings.Fields(r.Seeds())); n != registry.FanOut-2 {
		t.Errorf("%d seeds, want those that answer", n)
	}
	if small := rosterOf(100); small.Seeds() != "" {
		t.Errorf("a small roster is read from %q", small.Seeds())
	}
}

// rosterOf is a roster of so many workers that answer their peers.
func rosterOf(n int) registry.Roster {
	r := registry.Roster{Version: 1, Run: "1", Gen: 1}
	for i := range n {
		r.Rows = append(r.Rows, registry.Row{
			Instance: registry.Instance{Component: "worker", Index: i}, Rank: i, Peer: fmt.Sprintf("10.0.%d.%d:7", i/256, i%256),
		})
	}
	return r
}
