package registry_test

import (
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestLeastStep(t *testing.T) {
	steps := func(shared bool, n ...int64) (c registry.Checkpoint) {
		for _, s := range n {
			c.Steps = append(c.Steps, registry.CheckpointStep{Step: s, Shared: shared})
		}
		return c
	}
	for _, tc := range []struct {
		name string
		of   []registry.Checkpoint
		want int64
	}{
		{"nobody has one", nil, 0},
		{"one alone", []registry.Checkpoint{steps(false, 10, 20, 30)}, 30},
		{"the newest that all have", []registry.Checkpoint{steps(false, 10, 20, 30), steps(false, 10, 20)}, 20},
		{"nothing in common", []registry.Checkpoint{steps(false, 10), steps(false, 20)}, 0},
		{"stored for all", []registry.Checkpoint{steps(true, 10, 20), steps(true, 30)}, 30},
		{"of those some have their own", []registry.Checkpoint{steps(true, 10, 20, 30), steps(false, 10, 20)}, 20},
	} {
		of := map[registry.Instance]registry.Checkpoint{}
		for i, c := range tc.of {
			of[registry.Instance{Component: "worker", Index: i}] = c
		}
		if got := registry.LeastStep(of); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}
