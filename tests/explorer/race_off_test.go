//go:build !race

package explorer

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

var (
	firstSeed = flag.Uint64("seed", 1, "of the first random walk")
	walks     = flag.Int("walks", 40, "random walks per setting")
	length    = flag.Int("steps", 400, "steps of a random walk")
)

// mostStates bounds what a test may explore: a setting that grows beyond it has to shrink.
const mostStates = 20_000

const (
	gang     = registry.ScopeGang
	instance = registry.ScopeInstance
)

// small are the settings that are explored completely.
func small() map[string]setting {
	two := func(scope string, agents int, f faults) setting {
		return setting{Workers: 2, Scope: scope, Agents: agents, Hosts: 1, Budget: 1, Faults: f}
	}
	alone := func(scope string, agents int, f faults) setting {
		return setting{Workers: 1, Scope: scope, Agents: agents, Hosts: 1, Budget: 1, Runs: 2, Faults: f}
	}
	mixed := two(instance, 4, faults{Fail: 1, Wait: 1})
	mixed.Workers, mixed.PS = 1, 1
	services := two(gang, 3, faults{Fail: 1, Wait: 1})
	services.Workers, services.Services = 1, 1
	ordered := two(gang, 3, faults{Fail: 1, Wait: 1})
	ordered.Workers, ordered.PS, ordered.Ordered = 1, 1, true
	hosts := two(gang, 3, faults{Cut: 1, Wait: 3})
	hosts.Hosts = 2
	enough := two(gang, 2, faults{Fail: 1, Wait: 1})
	enough.Enough = 1
	retry := two(instance, 2, faults{Fail: 2, Wait: 1})
	retry.Budget, retry.Retry = 0, 1
	saves := two(gang, 2, faults{Save: 2, Wait: 1})
	saves.Saves = true
	more, less, moved := two(instance, 3, faults{Up: 1, Wait: 1}), two(instance, 2, faults{Down: 1, Wait: 1}),
		two(instance, 3, faults{Host: 1, Wait: 1})
	more.InPlace, less.InPlace, moved.InPlace, moved.Hosts = true, true, true, 2
	return map[string]setting{
		"in place, one more":    more,
		"in place, one less":    less,
		"in place, moved":       moved,
		"two, enough":           enough,
		"two, retry":            retry,
		"two, saves":            saves,
		"alone, late requests":  alone(gang, 2, faults{Slow: 1, Die: 1, Wait: 1}),
		"alone, die":            {Workers: 1, Scope: gang, Agents: 2, Hosts: 1, Budget: 1, Faults: faults{Die: 1, Delay: 1, Wait: 4}},
		"alone, cut":            {Workers: 1, Scope: gang, Agents: 2, Hosts: 2, Budget: 1, Faults: faults{Cut: 1, Wait: 6}},
		"alone, two runs, late": alone(gang, 4, faults{Late: 1, Wait: 1}),
		"alone, two runs, stop": alone(gang, 3, faults{Stop: 1, Wait: 1}),
		"alone, answers":        alone(instance, 2, faults{Unknown: 1, Die: 1, Wait: 1}),
		"alone, told to end":    alone(gang, 2, faults{Term: 1, Delay: 1, Wait: 1}),
		"alone, keys deleted":   alone(gang, 2, faults{Wipe: 1, Wait: 2}),
		"alone, copy restored":  alone(gang, 2, faults{Restore: 1, Wait: 3}),
		"alone, orphan":         alone(gang, 2, faults{Orphan: 1, Wait: 4}),
		"two":                   two(gang, 2, faults{Delay: 1, Wait: 2}),
		"two, instance":         two(instance, 2, faults{Delay: 1, Wait: 2}),
		"two, die":              two(gang, 3, faults{Die: 1, Wait: 2}),
		"two, instance, die":    two(instance, 3, faults{Die: 1, Wait: 2}),
		"two, fail":             two(gang, 3, faults{Fail: 1, Wait: 2}),
		"two, cut":              hosts,
		"two, one more":         two(gang, 3, faults{Up: 1, Wait: 1}),
		"two, one less":         two(gang, 2, faults{Down: 1, Wait: 1}),
		"two, session ends":     two(gang, 2, faults{Early: 1, Wait: 1}),
		"mixed, fail":           mixed,
		"service, fail":         services,
		"ordered, fail":         ordered,
	}
}

// TestExplore explores small settings completely.
func TestExplore(t *testing.T) {
	all, states, steps := small(), 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			f := s.complete(mostStates)
			t.Logf("%d states, %d steps", f.states, f.steps)
			states, steps = states+f.states, steps+f.steps
			report(t, &s, f)
		})
	}
	t.Logf("%d settings, %d states, %d steps", len(all), states, steps)
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
	some := faults{Die: 1, Fail: 1, Cut: 1, Early: 2, Unknown: 1, Term: 1, Slow: 1}
	death := faults{Die: 2, Orphan: 1, Host: 1, Cut: 1, Dup: 1, Gone: 1}
	user := faults{Die: 1, Fail: 1, Stop: 1, Up: 1, Down: 1, Unknown: 1, Early: 1, Slow: 2}
	loss := faults{Die: 1, Cut: 1, Wipe: 1, Restore: 1, Dup: 1, Early: 1, Slow: 1, Adopt: 1}
	every := faults{
		Die: 2, Orphan: 1, Host: 1, Cut: 2, Outage: 1, Fail: 2, Stage: 1, Unknown: 3, Early: 1, Term: 1, Dup: 1, Stop: 1, Up: 1, Slow: 2,
		Down: 1, Gone: 1, Late: 1,
	}
	return map[string]setting{
		"gang":            {Workers: 2, Scope: gang, Agents: 8, Hosts: 2, Budget: 2, Faults: some},
		"instance":        {Workers: 2, Scope: instance, Agents: 8, Hosts: 2, Budget: 2, Faults: some},
		"gang, death":     {Workers: 2, Scope: gang, Agents: 10, Hosts: 2, Budget: 3, Faults: death},
		"instance, death": {Workers: 2, Scope: instance, Agents: 10, Hosts: 2, Budget: 3, Faults: death},
		"gang, user":      {Workers: 2, Scope: gang, Agents: 10, Hosts: 2, Budget: 2, Runs: 2, Faults: user},
		"instance, user":  {Workers: 2, Scope: instance, Agents: 10, Hosts: 2, Budget: 2, Runs: 2, Faults: user},
		"gang, loss":      {Workers: 2, Scope: gang, Agents: 10, Hosts: 2, Budget: 2, Runs: 2, Faults: loss},
		"instance, loss":  {Workers: 2, Scope: instance, Agents: 10, Hosts: 2, Budget: 2, Runs: 2, Faults: loss},
		"mixed, every":    {Workers: 2, PS: 1, Scope: instance, Agents: 14, Hosts: 3, Budget: 3, Runs: 2, Faults: every},
		"three, every":    {Workers: 3, Scope: gang, Agents: 14, Hosts: 3, Budget: 3, Runs: 2, Faults: every},
		"service, every":  {Workers: 2, Services: 1, Scope: instance, Agents: 12, Hosts: 2, Budget: 3, Runs: 2, Faults: every},
		"ordered, retry":  {Workers: 2, PS: 1, Scope: gang, Agents: 12, Hosts: 2, Budget: 1, Retry: 2, Ordered: true, Faults: every},
		"instance, retry": {Workers: 2, Scope: instance, Agents: 12, Hosts: 2, Budget: 1, Retry: 2, Faults: every},
		"in place, user":  {Workers: 2, Scope: instance, InPlace: true, Agents: 12, Hosts: 2, Budget: 2, Faults: user},
		"in place, every": {Workers: 2, PS: 1, Scope: instance, InPlace: true, Agents: 14, Hosts: 3, Budget: 3, Runs: 2, Faults: every},
		"saves":           {Workers: 2, Scope: instance, Agents: 8, Hosts: 2, Budget: 2, Saves: true, Faults: faults{Die: 1, Save: 3, Stop: 1, Fail: 1, Unknown: 1, Early: 1, Slow: 1}},
		"ordered":         {Workers: 1, PS: 1, Scope: gang, Agents: 8, Hosts: 2, Budget: 2, Ordered: true, Faults: faults{Die: 1, Fail: 1, Cut: 1, Unknown: 1, Early: 1, Slow: 1}},
		"retry":           {Workers: 2, Scope: instance, Agents: 6, Hosts: 1, Retry: 1, Faults: faults{Fail: 2, Die: 1}},
		"from a shell":    {Workers: 2, Scope: gang, Agents: 12, Hosts: 2, Budget: 2, Shell: true, Faults: every},
	}
}

// TestWalk takes random walks.
func TestWalk(t *testing.T) {
	all, total := large(), 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			steps := 0
			for k := range *walks {
				f := s.walk(*firstSeed+uint64(k), *length)
				steps += f.steps
				if f.bad != "" {
					t.Logf("seed %d", *firstSeed+uint64(k))
					report(t, &s, f)
					return
				}
			}
			t.Logf("%d walks, %d steps", *walks, steps)
			total += steps
		})
	}
	t.Logf("%d settings, %d walks each, %d steps", len(all), *walks, total)
}
