package conductor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// kept are steps that are in a store, of the rank's own folder or of all.
func kept(shared bool, steps ...int64) (c registry.Checkpoint) {
	c.Own = !shared
	for _, s := range steps {
		c.Steps = append(c.Steps, registry.CheckpointStep{Step: s, URI: fmt.Sprint("of ", s), SHA256: "sum", Shared: shared})
	}
	return c
}

// ranksOf is a gang of workers.
func ranksOf(n int, ranks string) conductor.Facts {
	c := component("worker", "worker", n, registry.ScopeGang)
	c.Ranks = ranks
	return factsOf(c)
}

func TestLeastStep(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks int
		rule  string
		of    []registry.Checkpoint
		want  int64
	}{
		{"nobody has one", 2, "", nil, 0},
		{"one saves for all, or is the first", 3, "", []registry.Checkpoint{kept(false, 10, 20, 30, 40, 50, 60)}, 20},
		{"one saves for all", 3, conductor.RanksSome, []registry.Checkpoint{kept(false, 10, 20, 30)}, 30},
		{"one saves, all must", 3, conductor.RanksAll, []registry.Checkpoint{kept(false, 10, 20, 30)}, 0},
		{"two save, the third not yet", 3, "", []registry.Checkpoint{kept(false, 10, 20), kept(false, 10)}, 0},
		{"two save, the third never", 3, conductor.RanksSome, []registry.Checkpoint{kept(false, 10, 20), kept(false, 10)}, 10},
		{"the newest that all have", 2, "", []registry.Checkpoint{kept(false, 10, 20, 30), kept(false, 10, 20)}, 20},
		{"nothing in common", 2, "", []registry.Checkpoint{kept(false, 10), kept(false, 20)}, 0},
		{"each its own", 2, conductor.RanksEach, []registry.Checkpoint{kept(false, 10), kept(false, 20)}, math.MaxInt64},
		{"stored for all", 2, "", []registry.Checkpoint{kept(true, 10, 20), kept(true, 30)}, 30},
		{"of those some have their own", 2, "", []registry.Checkpoint{kept(true, 10, 20, 30), kept(false, 10, 20)}, 20},
	} {
		of := map[registry.Instance]registry.Checkpoint{}
		for i, c := range tc.of {
			of[registry.Instance{Component: "worker", Index: i}] = c
		}
		facts, own := ranksOf(tc.ranks, tc.rule), of[in("worker-0")]
		found := facts.CommonStep(registry.Directive{Gen: 3}, of)
		if got := facts.LeastStep(4, found, own, in("worker-0")); got != 0 && got != math.MaxInt64 {
			t.Errorf("%s, in another generation: got %d, want 0", tc.name, got)
		}
		if got := facts.LeastStep(3, found, own, in("worker-0")); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}

// That a restart would begin anew is known while all still runs, and one of the ranks tells it.
func TestApart(t *testing.T) {
	for _, tc := range []struct {
		name, rule string
		of         []registry.Checkpoint
		want       string
		first      string
	}{
		{"nobody has one", "", nil, "", ""},
		{"one saves for all", "", []registry.Checkpoint{kept(false, 1, 2, 3)}, "", ""},
		{"one saves, all must", conductor.RanksAll, []registry.Checkpoint{kept(false, 1, 2, 3)}, "worker-0 has 1 2 3, worker-1 has none, worker-2 has none", "worker-0"},
		{"the first are stored", conductor.RanksAll, []registry.Checkpoint{kept(false, 1, 2)}, "", ""},
		{"the third never saves", "", []registry.Checkpoint{kept(false, 1), kept(false, 1, 2, 3)}, "worker-0 has 1, worker-1 has 1 2 3, worker-2 has none", "worker-1"},
		{"nor need it", conductor.RanksSome, []registry.Checkpoint{kept(false, 1), kept(false, 1, 2, 3)}, "", ""},
		{"each has another", conductor.RanksSome, []registry.Checkpoint{kept(false, 1, 3, 5), kept(false, 2, 4, 6)}, "worker-0 has 1 3 5, worker-1 has 2 4 6", "worker-0"},
		{"each its own", conductor.RanksEach, []registry.Checkpoint{kept(false, 1, 3, 5), kept(false, 2, 4, 6)}, "", ""},
	} {
		of := map[registry.Instance]registry.Checkpoint{}
		for i, c := range tc.of {
			of[registry.Instance{Component: "worker", Index: i}] = c
		}
		found := ranksOf(3, tc.rule).CommonStep(registry.Directive{}, of)
		why, first := found.Apart, found.First
		if why != tc.want || why != "" && first != tc.first {
			t.Errorf("%s: got %q of %s, want %q of %s", tc.name, why, first, tc.want, tc.first)
		}
	}
}

// saver is a rank with its part of a store, as agents keep it.
type saver struct {
	next  int64
	vault []int64
	key   registry.Checkpoint
}

// save stores a step, names it, and removes what nobody can go on from by what the others were seen to have.
func (s *saver) save(step int64, keep int, least func(registry.Checkpoint) int64) {
	s.vault = append(s.vault, step)
	s.key.Own, s.key.Steps = true, append(slices.Clone(s.key.Steps), registry.CheckpointStep{Step: step, SHA256: "sum"})
	oldest := least(s.key)
	gone := slices.Clone(s.vault[:max(0, len(s.vault)-keep)])
	gone = slices.DeleteFunc(gone, func(step int64) bool { return step >= oldest })
	s.vault = slices.DeleteFunc(s.vault, func(step int64) bool { return slices.Contains(gone, step) })
	s.key.Steps = slices.DeleteFunc(s.key.Steps, func(c registry.CheckpointStep) bool { return slices.Contains(gone, c.Step) })
	s.key.Steps = conductor.Named(s.key.Steps, oldest)
}

func (s *saver) has(step int64) bool {
	return slices.Contains(s.vault, step) && slices.ContainsFunc(s.key.Steps, func(c registry.CheckpointStep) bool { return c.Step == step })
}

// Ranks of different pace save, and each may see what the others have as it was some time ago: the newest step that all have is
// never removed before there is a newer one, from no store and no key, and no key grows without bound.
func TestKeepLaws(t *testing.T) {
	reached := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		ranks, keep := 1+rng.IntN(4), 1+rng.IntN(4)
		rule := []string{"", conductor.RanksAll}[rng.IntN(2)]
		facts := ranksOf(ranks, rule)
		all := make([]saver, ranks)
		seen := map[registry.Instance]registry.Checkpoint{}
		best := int64(-1)
		newest := func() int64 {
			for _, step := range slices.Backward(slices.Sorted(slices.Values(all[0].vault))) {
				if !slices.ContainsFunc(all, func(s saver) bool { return !s.has(step) }) {
					return step
				}
			}
			return -1
		}
		for range 300 {
			i := rng.IntN(ranks)
			if rng.IntN(4) > 0 {
				i = 0 // the fast one
			}
			s := &all[i]
			s.next += 10
			if i > 0 && rng.IntN(3) == 0 && s.next+10 <= all[0].next {
				s.next += 10 // of those that wait only the newest is stored
			}
			who := registry.Instance{Component: "worker", Index: i}
			s.save(s.next, keep, func(own registry.Checkpoint) int64 {
				found := facts.CommonStep(registry.Directive{}, seen)
				if facts.Alone(0, found, own, who) {
					now := map[registry.Instance]registry.Checkpoint{}
					for j := range all {
						now[registry.Instance{Component: "worker", Index: j}] = all[j].key
					}
					now[who] = own
					found = facts.CommonStep(registry.Directive{}, now)
				}
				return facts.LeastStep(0, found, own, who)
			})
			if rng.IntN(3) == 0 {
				for j := range all {
					seen[registry.Instance{Component: "worker", Index: j}] = registry.Checkpoint{Own: all[j].key.Own, Steps: slices.Clone(all[j].key.Steps)}
				}
			}
			now := newest()
			if now < best {
				t.Fatalf("seed %d: the newest common step was %d and is %d: %s", seed, best, now, told(all))
			}
			best = max(best, now)
			if len(s.key.Steps) > registry.MostSteps {
				t.Fatalf("seed %d: %d steps in a key", seed, len(s.key.Steps))
			}
		}
		reached += max(0, int(best))
		if ranks == 1 && len(all[0].vault) > max(keep, 5) {
			t.Errorf("seed %d: one rank alone keeps %d of %d", seed, len(all[0].vault), keep)
		}
	}
	if reached == 0 {
		t.Error("no ranks ever had a step in common")
	}
}

func told(all []saver) (text string) {
	for i, s := range all {
		text += fmt.Sprintf("\nrank %d: in the store %v, named %d", i, s.vault, len(s.key.Steps))
	}
	return text
}
