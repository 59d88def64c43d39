package checkpoint

import (
	"context"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
)

// committed is the registry of worker-0, which counts how often the keys of all are read.
type committed struct {
	*consul.Membership
	all   map[registry.Instance]registry.Checkpoint
	lists int
}

func (c *committed) Own(context.Context) (registry.Checkpoint, error) {
	return c.all[registry.Instance{Component: "worker"}], nil
}

func (c *committed) Stored(context.Context) (map[registry.Instance]registry.Checkpoint, error) {
	c.lists++
	return c.all, nil
}

// All ranks resume at the same time: one that has copies of its own does not read the keys of all.
func TestCandidates(t *testing.T) {
	in, other := registry.Instance{Component: "worker"}, registry.Instance{Component: "worker", Index: 1}
	steps := func(instance string, shared bool, steps ...int64) (list []registry.CheckpointStep) {
		for _, s := range steps {
			uri := Store{Top: "/s"}.Folder(StoredCopy{Instance: instance, Step: s, Generation: 1, Inc: "0123abcd"}.named())
			list = append(list, registry.CheckpointStep{Step: s, URI: uri, SHA256: "sum", Shared: shared})
		}
		return list
	}
	condemned := steps("worker-0", false, 10)[0]
	for name, tc := range map[string]struct {
		own, others registry.Checkpoint
		step        *int64
		want        []int64
		lists       int
	}{
		"its own, newest first": {
			registry.Checkpoint{Steps: steps("worker-0", false, 10, 20)}, registry.Checkpoint{Steps: steps("worker-1", false, 30)}, nil, []int64{20, 10}, 0,
		},
		"its own of a step": {registry.Checkpoint{Steps: steps("worker-0", false, 10, 20)}, registry.Checkpoint{}, new(int64(10)), []int64{10}, 0},
		"those that all share": {
			registry.Checkpoint{}, registry.Checkpoint{Steps: steps("worker-1", true, 30)}, nil, []int64{30}, 1,
		},
		"another's alone": {registry.Checkpoint{}, registry.Checkpoint{Steps: steps("worker-1", false, 30)}, nil, nil, 1},
		"its own is damaged": {
			registry.Checkpoint{
				Steps: steps("worker-0", false, 10), Bad: []registry.BadCopy{{URI: condemned.URI, SHA256: condemned.SHA256}},
			},
			registry.Checkpoint{Steps: steps("worker-1", true, 5)},
			nil,
			[]int64{5},
			1,
		},
	} {
		r := &committed{all: map[registry.Instance]registry.Checkpoint{in: tc.own, other: tc.others}}
		u := &uploader{m: &Manager{cfg: Config{Registry: func() Registry { return r }}}}
		found, err := u.candidates(t.Context(), in, tc.step)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, s := range found {
			got = append(got, s.Step)
		}
		if !slices.Equal(got, tc.want) || r.lists != tc.lists {
			t.Errorf("%s: got %v with %d readings of all keys, want %v with %d", name, got, r.lists, tc.want, tc.lists)
		}
	}
}
