package conductor_test

import (
	"testing"

	"github.com/muster-agent/muster/registry"
)

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
