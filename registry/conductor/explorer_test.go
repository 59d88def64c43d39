package conductor_test

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/muster-agent/muster/registry/conductor"
)

// TestExplore: no order of events breaks an invariant, and the goal can be reached from every state.
// The build tag long adds the larger settings.
func TestExplore(t *testing.T) {
	settings := map[string]setting{
		"alone, cut and crash": {Ranks: 1, Agents: 2, Budget: 1, Faults: faults{Crashes: 1, Cuts: 1, Fails: 1, Dups: 1}},
		"alone, instance":      {Ranks: 1, Agents: 3, Budget: 1, Instance: true, Faults: faults{Crashes: 1, Cuts: 1, Dups: 1}},
		"crash, stop":          {Ranks: 2, Agents: 3, Budget: 1, Faults: faults{Crashes: 1, Stops: 1}},
		"ordered, alone":       {Ranks: 2, Agents: 2, Budget: 1, Order: true, Faults: faults{Fails: 1}},
		"instance, crash":      {Ranks: 2, Agents: 3, Budget: 1, Instance: true, Faults: faults{Crashes: 1, Fails: 1}},
		"retry, alone":         {Ranks: 1, Agents: 2, Retry: 2, Faults: faults{Crashes: 1, Fails: 2}},
		"retry, instance":      {Ranks: 2, Agents: 2, Retry: 1, Instance: true, Faults: faults{Fails: 2}},
		"saves":                {Ranks: 2, Agents: 2, Budget: 1, Faults: faults{Saves: 2}},
		"saves, alone":         {Ranks: 1, Agents: 2, Budget: 1, Instance: true, Faults: faults{Crashes: 1, Saves: 2, Stops: 1}},
		"enough":               {Ranks: 2, Agents: 2, Budget: 1, Enough: 1, Faults: faults{Fails: 1}},
	}
	if !hurried() {
		maps.Copy(settings, map[string]setting{
			"alone, wrong relaunch":          {Ranks: 1, Agents: 3, Budget: 1, Faults: faults{Crashes: 1, Cuts: 1, Dups: 1}},
			"crash, failure, stop":           {Ranks: 2, Agents: 3, Budget: 1, Faults: faults{Crashes: 1, Fails: 1, Stops: 1}},
			"early session end":              {Ranks: 2, Agents: 2, Budget: 1, Faults: faults{Spurious: 2, Fails: 1}},
			"cut":                            {Ranks: 2, Agents: 2, Budget: 1, Faults: faults{Cuts: 1}},
			"ordered, crash":                 {Ranks: 2, Agents: 3, Budget: 1, Order: true, Faults: faults{Crashes: 1, Fails: 1}},
			"ordered, instance":              {Ranks: 2, Agents: 3, Budget: 1, Order: true, Instance: true, Faults: faults{Crashes: 1, Fails: 1}},
			"instance, all crash":            {Ranks: 2, Agents: 4, Budget: 1, Instance: true, Faults: faults{Crashes: 2}},
			"instance, all crash, continued": {Ranks: 2, Agents: 4, Budget: 1, Instance: true, Continued: true, Faults: faults{Crashes: 2}},
			"retry, crash, stop":             {Ranks: 2, Agents: 3, Retry: 1, Faults: faults{Crashes: 1, Fails: 1, Stops: 1}},
			"retry, ordered, instance":       {Ranks: 2, Agents: 3, Retry: 1, Order: true, Instance: true, Faults: faults{Crashes: 1, Fails: 1}},
			"retry, budget, enough":          {Ranks: 2, Agents: 2, Budget: 1, Retry: 1, Enough: 1, Faults: faults{Fails: 2}},
			"saves, failure":                 {Ranks: 2, Agents: 2, Budget: 1, Faults: faults{Fails: 1, Saves: 1}},
			"instance, cut":                  {Ranks: 2, Agents: 2, Budget: 1, Instance: true, Faults: faults{Cuts: 1}},
		})
	}
	for name, s := range settings {
		t.Run(name, func(t *testing.T) { s.explore(t) })
	}
}

// hurried: only the smallest settings.
func hurried() bool { return testing.Short() }

func (s setting) explore(t *testing.T) {
	t.Helper()
	found := newExplorer(s).run()
	t.Logf("%d states, %d edges", found.states, found.edges)
	if found.what != "" {
		t.Errorf("got %s:\n%s", found.what, found.trace)
	}
}

// TestExploreFindsMutations: each rule taken away is missed at once, so the explorer sees, and the
// rule is there for a reason.
func TestExploreFindsMutations(t *testing.T) {
	for _, tc := range mutations() {
		if hurried() && tc.s.Agents > 2 {
			continue
		}
		t.Run(tc.name(), func(t *testing.T) {
			found := newExplorer(tc.s).run()
			t.Logf("%s after %d states\n%s", found.what, found.states, found.trace)
			if !strings.HasPrefix(found.what, tc.want) {
				t.Errorf("without this rule: got %q after %d states, want %s", found.what, found.states, tc.want)
			}
		})
	}
}

// TestExploreMutationsWithTheRule: the same settings are sound when the rule is there, so it is the
// rule that was missed. The largest is left to the build tag long.
func TestExploreMutationsWithTheRule(t *testing.T) {
	for _, tc := range mutations() {
		if tc.s.Without == withoutAnyPhase || hurried() && tc.s.Agents > 2 {
			continue
		}
		t.Run(tc.name(), func(t *testing.T) { tc.withTheRule().explore(t) })
	}
}

func (m mutation) withTheRule() setting {
	m.s.Without, m.s.Orphans = "", false
	return m.s
}

type mutation struct {
	s    setting
	want string // what is found without the rule
}

func (m mutation) name() string {
	if m.s.Orphans {
		return "a process dies with its agent"
	}
	return m.s.Without
}

func mutations() []mutation {
	return []mutation{
		{setting{Ranks: 2, Agents: 2, Budget: 1, Without: withoutKillFirst, Faults: faults{Fails: 1}}, "S2"},
		{setting{Ranks: 2, Agents: 2, Budget: 1, Without: withoutChecks, Faults: faults{Fails: 1, Spurious: 1}}, "D1"},
		{setting{Ranks: 1, Agents: 2, Budget: 1, Without: withoutGrace, Faults: faults{Cuts: 1, Dups: 1}}, "S2"},
		{setting{Ranks: 2, Agents: 3, Budget: 1, Without: withoutMismatch, Faults: faults{Crashes: 1}}, "deadlock"},
		{setting{Ranks: 1, Agents: 2, Budget: 1, Without: withoutNewcomers, Faults: faults{Crashes: 1}}, "deadlock"},
		{setting{Ranks: 2, Agents: 3, Budget: 1, Without: withoutRecord, Faults: faults{Crashes: 1, Fails: 1}}, "deadlock"},
		{setting{Ranks: 2, Agents: 2, Budget: 1, Without: withoutAckAgain, Faults: faults{Cuts: 1}}, "deadlock"},
		{setting{Ranks: 2, Agents: 3, Budget: 1, Without: withoutAnyPhase, Instance: true, FenceReports: true, Faults: faults{Crashes: 1, Cuts: 1}}, "deadlock"},
		{setting{Ranks: 2, Agents: 2, Budget: 1, Order: true, Without: withoutOrder}, "O1"},
		{setting{Ranks: 2, Agents: 2, Retry: 1, Instance: true, Without: withoutAnew, Faults: faults{Fails: 1}}, "E1"},
		{setting{Ranks: 1, Agents: 2, Budget: 1, Orphans: true, Faults: faults{Crashes: 1}}, "S2"},
	}
}

// explorer is a breadth-first search over the states of a setting.
type explorer struct {
	s       setting
	facts   conductor.Facts
	claimed map[claimKey]claimAnswer
	ruled   map[ruleKey][]ruled

	seeds [2]maphash.Seed
	index map[[2]uint64]int32 // by 128-bit hash
	queue []world             // not yet expanded
	fine  []bool              // the goal is reached, or nothing is owed
	links []link
	from  []int32 // fair edges
	to    []int32
	edges int
}

type link struct {
	parent int32
	label  label
}

type finding struct {
	what, trace   string
	states, edges int
}

func newExplorer(s setting) *explorer {
	return &explorer{
		s: s, facts: exploredFacts(s), claimed: map[claimKey]claimAnswer{}, ruled: map[ruleKey][]ruled{},
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, index: map[[2]uint64]int32{},
	}
}

func (x *explorer) run() finding {
	x.add(x.s.start(), -1, label{})
	for k := int32(0); len(x.queue) > 0; k++ {
		w := x.queue[0]
		x.queue = x.queue[1:]
		if bad := x.s.bad(&w); bad != "" {
			return x.found(bad, k)
		}
		x.next(w, func(t world, l label) {
			x.edges++
			id := x.add(t, k, l)
			if l.fair() {
				x.from, x.to = append(x.from, k), append(x.to, id)
			}
		})
	}
	if id, ok := x.stuck(); ok && !x.s.NoAxiom {
		return x.found("deadlock: no fair way to the goal", id)
	}
	return finding{states: len(x.links), edges: x.edges}
}

func (x *explorer) add(w world, parent int32, l label) int32 {
	h := x.hash(&w)
	if id, ok := x.index[h]; ok {
		return id
	}
	id := int32(len(x.links))
	x.index[h] = id
	x.queue, x.links = append(x.queue, w), append(x.links, link{parent, l})
	x.fine = append(x.fine, x.s.good(&w) || x.s.starved(&w))
	return id
}

func (x *explorer) hash(w *world) [2]uint64 {
	b := unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w)) // all fields are bytes: no padding
	return [2]uint64{maphash.Bytes(x.seeds[0], b), maphash.Bytes(x.seeds[1], b)}
}

// found walks the way to state id again and writes it down.
func (x *explorer) found(what string, id int32) finding {
	var path []int32
	for k := id; k > 0; k = x.links[k].parent {
		path = append(path, k)
	}
	var text strings.Builder
	w := x.s.start()
	for k, state := range slices.Backward(path) {
		l := x.links[state].label
		fmt.Fprintf(&text, "  %2d agent %d %s (%d)\n", len(path)-k, l.a, l.what, l.x)
		done := false
		x.next(w, func(t world, m label) {
			if !done && m == l && x.index[x.hash(&t)] == state {
				w, done = t, true
			}
		})
	}
	fmt.Fprintf(&text, "  directive %+v, lock %d, members %+v, live %v, ready %v", w.Dirs[w.Cur], w.Lock, w.Mem, w.Live, w.Ready)
	return finding{what: what, trace: text.String(), states: len(x.links), edges: x.edges}
}

// stuck finds a state that owes progress and from which no fair steps lead to the goal.
func (x *explorer) stuck() (int32, bool) {
	start := make([]int32, len(x.fine)+1)
	for _, t := range x.to {
		start[t+1]++
	}
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	pos := append([]int32(nil), start...)
	rev := make([]int32, len(x.to))
	for e, t := range x.to {
		rev[pos[t]] = x.from[e]
		pos[t]++
	}
	ok := append([]bool(nil), x.fine...)
	var queue []int32
	for i := range ok {
		if ok[i] {
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		k := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range rev[start[k]:start[k+1]] {
			if !ok[p] {
				ok[p] = true
				queue = append(queue, p)
			}
		}
	}
	for i := range ok {
		if !ok[i] {
			return int32(i), true
		}
	}
	return 0, false
}
