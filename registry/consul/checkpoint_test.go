package consul

import (
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestWithStep(t *testing.T) {
	steps := func(n ...int64) (out []registry.CheckpointStep) {
		for _, s := range n {
			out = append(out, registry.CheckpointStep{Step: s})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		have []registry.CheckpointStep
		add  int64
		want []registry.CheckpointStep
	}{
		{"first", nil, 1, steps(1)},
		{"gone back", steps(1, 3), 2, steps(1, 3, 2)},
		{"gone back below all", steps(10, 20, 30, 40, 50), 5, steps(10, 20, 30, 40, 50, 5)},
		{"again", steps(1, 2), 2, steps(1, 2)},
		{"far apart", steps(1), 1 << 40, steps(1, 1<<40)},
	} {
		if got := withStep(tt.have, registry.CheckpointStep{Step: tt.add}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestHint(t *testing.T) {
	for _, tt := range []struct {
		id   string
		want uint64
	}{
		{"container_e17_1410901177871_0001_01_000005", 5},
		{"container_1_000120", 120},
	} {
		if got := hint(registry.Member{Origin: registry.Origin{ContainerID: tt.id}, Inc: "x"}); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.id, got, tt.want)
		}
	}
	if hint(registry.Member{Inc: "a"}) == hint(registry.Member{Inc: "b"}) {
		t.Error("two incarnations begin at one place")
	}
}
