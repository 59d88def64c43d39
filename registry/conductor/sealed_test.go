package conductor_test

import (
	"bytes"
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
