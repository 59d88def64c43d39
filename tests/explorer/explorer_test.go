package explorer

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

var (
	firstSeed = flag.Uint64("seed", 1, "of the first random walk")
	walks     = flag.Int("walks", 40, "random walks per setting")
	length    = flag.Int("steps", 400, "steps of a random walk")
)

// mostStates bounds what a test may explore: a setting that grows beyond it has to shrink.
const mostStates = 400_000

const (
	gang     = registry.ScopeGang
	instance = registry.ScopeInstance
)

// small are the settings that are explored completely.
func small() map[string]setting {
	return map[string]setting{
		"alone, die":         {Workers: 1, Scope: gang, Agents: 2, Hosts: 1, Budget: 1, Faults: faults{Die: 1, Delay: 1, Wait: 4}},
		"two":                {Workers: 2, Scope: gang, Agents: 2, Hosts: 1, Budget: 1, Faults: faults{Delay: 1, Wait: 2}},
		"two, instance":      {Workers: 2, Scope: instance, Agents: 2, Hosts: 1, Budget: 1, Faults: faults{Delay: 1, Wait: 2}},
		"two, die":           {Workers: 2, Scope: gang, Agents: 3, Hosts: 1, Budget: 1, Faults: faults{Die: 1, Wait: 3}},
		"two, fail":          {Workers: 2, Scope: gang, Agents: 3, Hosts: 1, Budget: 1, Faults: faults{Fail: 1, Wait: 2}},
		"two, cut":           {Workers: 2, Scope: gang, Agents: 3, Hosts: 2, Budget: 1, Faults: faults{Cut: 1, Wait: 5}},
		"two, instance, die": {Workers: 2, Scope: instance, Agents: 3, Hosts: 1, Budget: 1, Faults: faults{Die: 1, Wait: 3}},
	}
}

// TestExplore explores small settings completely.
func TestExplore(t *testing.T) {
	all := small()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			f := s.complete(mostStates)
			t.Logf("%d states, %d steps, %s", f.states, f.steps, time.Since(began))
			report(t, &s, f)
		})
	}
}

// report fails with a shortened story.
func report(t *testing.T, s *setting, f finding) {
	t.Helper()
	if f.bad == "" {
		return
	}
	if len(f.story) == 0 {
		t.Error(f.bad)
		return
	}
	story := s.shrink(f.story)
	bad, _ := s.replay(story)
	t.Errorf("%s\n%s\nshortened: %s\n%s", f.bad, s, bad, strings.Join(story, "\n"))
}

// large are the settings of the random walks.
func large() map[string]setting {
	some := faults{Die: 1, Fail: 1, Cut: 1, Early: 1, Unknown: 1, Term: 1}
	return map[string]setting{
		"gang":     {Workers: 2, Scope: gang, Agents: 8, Hosts: 2, Budget: 2, Faults: some},
		"instance": {Workers: 2, Scope: instance, Agents: 8, Hosts: 2, Budget: 2, Faults: some},
	}
}

// TestWalk takes random walks.
func TestWalk(t *testing.T) {
	all := large()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			began, steps := time.Now(), 0
			for k := range *walks {
				f := s.walk(*firstSeed+uint64(k), *length)
				steps += f.steps
				if f.bad != "" {
					t.Logf("seed %d", *firstSeed+uint64(k))
					report(t, &s, f)
					return
				}
			}
			t.Logf("%d walks, %d steps, %s", *walks, steps, time.Since(began))
		})
	}
}
