package conductor_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestRosterLaw: whatever the order in which members join and acknowledge, the roster has the
// same bytes.
func TestRosterLaw(t *testing.T) {
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
		var rows []string
		for _, row := range g.roster.Rows {
			rows = append(rows, row.Addr)
		}
		if want := []string{"hps-0:2000", "hworker-0:2000", "hworker-1:2001", "hworker-2:2002", "hboard-0:2000"}; !slices.Equal(rows, want) {
			t.Fatalf("got rows %v, want %v", rows, want)
		}
	}
}
