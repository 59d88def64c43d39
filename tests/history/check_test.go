package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// good is the history of two runs of a gang of two: the first in two generations, after the death of a process, the
// second with a result that is reported before the other's end.
func good(scope string) []event {
	both := []string{"w-0", "w-1"}
	h := []event{
		{At: 1, Kind: runBegins, Run: "r1", Scope: scope, Instances: both},
		{At: 3, Kind: directive, Run: "r1", Gen: 1, Act: "wait", Asked: 2},
		{At: 7, Kind: directive, Run: "r1", Gen: 1, Act: "run", Sealed: 1, Asked: 3},
		{At: 7, Kind: released, Run: "r1", Gen: 1},
		{At: 8, Kind: started, Run: "r1", Instance: "w-0", Gen: 1, Pid: 10},
		{At: 9, Kind: started, Run: "r1", Instance: "w-1", Gen: 1, Pid: 11},
		{At: 20, Kind: dead, Pid: 11},
		{At: 25, Kind: directive, Run: "r1", Gen: 2, Act: "wait", Sealed: 1, Asked: 7},
		{At: 30, Kind: ending, Pid: 10, Code: 143},
		{At: 31, Kind: directive, Run: "r1", Gen: 2, Act: "run", Sealed: 2, Asked: 25},
		{At: 31, Kind: released, Run: "r1", Gen: 2},
		{At: 32, Kind: started, Run: "r1", Instance: "w-0", Gen: 2, Pid: 12},
		{At: 33, Kind: started, Run: "r1", Instance: "w-1", Gen: 2, Pid: 13},
		{At: 40, Kind: ending, Pid: 12},
		{At: 41, Kind: reported, Run: "r1", Instance: "w-0", Gen: 2, Asked: 31},
		{At: 45, Kind: ending, Pid: 13},
		{At: 46, Kind: verdict, Run: "r1", Gen: 2, Outcome: "succeeded", Text: "ok", Asked: 41},
		{At: 47, Kind: agentEnds, Run: "r1", Instance: "w-0", Pid: 100},
		{At: 50, Kind: runBegins, Run: "r2", Scope: scope, Instances: both},
		{At: 55, Kind: directive, Run: "r2", Gen: 3, Act: "run", Sealed: 3, Asked: 50},
		{At: 56, Kind: started, Run: "r2", Instance: "w-0", Gen: 3, Pid: 14},
		{At: 60, Kind: ending, Pid: 14, Code: 1},
		{At: 61, Kind: agentEnds, Run: "r2", Instance: "w-0", Pid: 101, Code: 1},
		{At: 62, Kind: verdict, Run: "r2", Gen: 3, Outcome: "failed", Text: "no", Asked: 55},
		{At: 62, Kind: verdict, Run: "r1", Gen: 2, Outcome: "succeeded", Text: "ok", Asked: 55},
	}
	for i := range h {
		h[i].App = "a"
	}
	return h
}

func TestAGoodHistoryBreaksNothing(t *testing.T) {
	for _, scope := range []string{registry.ScopeGang, registry.ScopeInstance} {
		h := good(scope)
		slices.Reverse(h) // the order of lines in the file does not count
		if got := check(h); len(got) != 0 {
			t.Errorf("%s: %s", scope, strings.Join(got, "\n"))
		}
	}
}

func TestBadHistories(t *testing.T) {
	of := func(e event) event {
		e.App = "a"
		return e
	}
	add := func(more ...event) func([]event) []event {
		return func(h []event) []event {
			for _, e := range more {
				h = append(h, of(e))
			}
			return h
		}
	}
	change := func(match func(event) bool, by func(*event)) func([]event) []event {
		return func(h []event) []event {
			for i := range h {
				if match(h[i]) {
					by(&h[i])
				}
			}
			return h
		}
	}
	drop := func(match func(event) bool) func([]event) []event {
		return func(h []event) []event { return slices.DeleteFunc(h, match) }
	}
	pid := func(n int, k kind) func(event) bool { return func(e event) bool { return e.Pid == n && e.Kind == k } }
	tests := []struct {
		name string
		make func([]event) []event
		want string // words of the breach
	}{
		{"the lock was held", change(pid(12, started), func(e *event) { e.Holder = 10 }), "at most one live process per rank"},
		{"seen alive after the next start", add(event{At: 33, Kind: dead, Pid: 10}), "at most one live process per rank"},
		{
			"of two runs", add(event{At: 57, Kind: dead, Pid: 12}), "at most one live process per rank",
		},
		{
			"another rank of the older generation lives", add(event{At: 32, Kind: dead, Pid: 10}, event{At: 33, Kind: dead, Pid: 11}),
			"while one of an older generation lives",
		},
		{
			"an older generation starts again",
			add(event{At: 35, Kind: started, Run: "r1", Instance: "w-2", Gen: 1, Pid: 20}),
			"while one of an older generation lives",
		},
		{
			"a later read finds the generation waiting",
			add(event{At: 12, Kind: directive, Run: "r1", Gen: 1, Act: "wait", Asked: 10}), "before its generation is released",
		},
		{
			"a later read finds an older generation",
			add(event{At: 36, Kind: directive, Run: "r1", Gen: 1, Act: "run", Sealed: 1, Asked: 35}),
			"before its generation is released",
		},
		{
			"nobody saw the release", drop(func(e event) bool { return e.Kind == directive && e.Sealed == 3 }),
			"no roster of this generation",
		},
		{
			"released without one", change(func(e event) bool { return e.Kind == released && e.Gen == 2 },
				func(e *event) { e.Missing = []string{"w-1"} }), "without [w-1]",
		},
		{
			"another verdict", add(event{At: 70, Kind: verdict, Run: "r1", Gen: 2, Outcome: "failed", Text: "no", Asked: 69}),
			"one verdict, which never changes",
		},
		{
			"a start after the verdict",
			add(event{At: 48, Kind: started, Run: "r1", Instance: "w-0", Gen: 2, Pid: 20}), "starts after its verdict",
		},
		{
			"the same instance again",
			add(event{At: 42, Kind: started, Run: "r1", Instance: "w-0", Gen: 2, Pid: 20}), "not worked for again",
		},
		{"a success without an end", drop(pid(13, ending)), "no process of w-1 has ended with 0"},
		{
			"a success of a process that failed", change(pid(13, ending), func(e *event) { e.Code = 1 }),
			"no process of w-1 has ended with 0",
		},
		{"an agent hides a failure", change(pid(101, agentEnds), func(e *event) { e.Code = 0 }), "was not a failure"},
		{"a run without an end", drop(func(e event) bool { return e.Kind == verdict && e.Run == "r2" }), "every run ends"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check(tt.make(good(registry.ScopeInstance)))
			if !slices.ContainsFunc(got, func(b string) bool { return strings.Contains(b, tt.want) }) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
}

// What the registry has lost is no evidence: a verdict or a result may be among it, and the directive may be older.
func TestLostDataIsNoEvidence(t *testing.T) {
	h := good(registry.ScopeInstance)
	h = append(h,
		event{At: 48, Kind: dataLoss, App: "a"},
		event{At: 49, Kind: started, App: "a", Run: "r1", Instance: "w-0", Gen: 1, Pid: 20},
		event{At: 49, Kind: started, App: "a", Run: "r1", Instance: "w-1", Gen: 1, Pid: 22},
		event{At: 49, Kind: directive, App: "a", Run: "r1", Gen: 1, Act: "wait", Asked: 48},
	)
	if got := check(h); len(got) != 0 {
		t.Error(strings.Join(got, "\n"))
	}
	two := append(slices.Clone(h), event{At: 49, Kind: started, App: "a", Run: "r1", Instance: "w-0", Gen: 1, Pid: 21, Holder: 20})
	if got := check(two); len(got) != 1 || !strings.Contains(got[0], "one live process per rank") {
		t.Errorf("got %q, want the two processes alone: no loss excuses them", got)
	}
	apart := append(slices.Clone(h), event{At: 50, Kind: dead, App: "a", Pid: 13})
	if got := check(apart); len(got) == 0 {
		t.Error("a process of generation 2 may live beside one of generation 1 after a loss")
	}
}

// A process that starts again in a generation that was released is right, though the registry went back to before that.
func TestAStartAfterALostRelease(t *testing.T) {
	h := append(good(registry.ScopeInstance),
		event{At: 56, Kind: dataLoss, App: "a", Asked: 51},
		event{At: 61, Kind: started, App: "a", Run: "r2", Instance: "w-0", Gen: 3, Pid: 20},
		event{At: 61, Kind: ending, App: "a", Pid: 20, Code: 1},
		event{At: 62, Kind: directive, App: "a", Run: "r2", Gen: 3, Act: "wait", Asked: 62},
	)
	if got := check(h); len(got) != 0 {
		t.Error(strings.Join(got, "\n"))
	}
	without := slices.DeleteFunc(h, func(e event) bool { return e.Kind == dataLoss })
	if got := check(without); len(got) == 0 {
		t.Error("a start beside a directive that waits is right although nothing was lost")
	}
}

// A verdict that the registry has lost may be followed by another; one that its older copy has must stand.
func TestALostVerdict(t *testing.T) {
	for _, tt := range []struct {
		name     string
		copied   int64 // when the copy was asked for
		breaches int
	}{{"of before the verdict", 30, 0}, {"of after the verdict", 47, 1}, {"deleted", 0, 0}} {
		h := append(good(registry.ScopeInstance),
			event{At: 48, Kind: dataLoss, App: "a", Asked: tt.copied},
			event{At: 49, Kind: verdict, App: "a", Run: "r1", Gen: 2, Outcome: "failed", Text: "no", Asked: 48},
		)
		h = slices.DeleteFunc(h, func(e event) bool { return e.Kind == verdict && e.At == 62 && e.Run == "r1" })
		if got := check(h); len(got) != tt.breaches {
			t.Errorf("%s: got %q, want %d", tt.name, got, tt.breaches)
		}
	}
}

// A run that an operator has stopped after a loss has ended.
func TestAnOperatorEndsARun(t *testing.T) {
	h := append(good(registry.ScopeGang), event{At: 80, Kind: runBegins, App: "a", Run: "r3"})
	if got := check(h); len(got) != 1 {
		t.Errorf("got %q, want that r3 has no verdict", got)
	}
	if got := check(append(h, event{At: 90, Kind: runStops, App: "a", Run: "r3"})); len(got) != 0 {
		t.Error(got)
	}
}

func TestUnacknowledged(t *testing.T) {
	row := func(i int, inc string, done bool) registry.Row {
		return registry.Row{Instance: registry.Instance{Component: "w", Index: i}, Inc: inc, Done: done}
	}
	r := registry.Roster{Gen: 3, Rows: []registry.Row{row(0, "a", false), row(1, "b", false), row(2, "c", true), row(3, "d", false)}}
	members := map[registry.Instance]registry.Member{}
	for i, m := range []registry.Member{{Inc: "a", Gen: 3}, {Inc: "b", Gen: 2}, {Inc: "c", Gen: 1}, {Inc: "other", Gen: 2}} {
		members[registry.Instance{Component: "w", Index: i}] = m
	}
	if got := unacknowledged(r, members); fmt.Sprint(got) != "[w-1]" {
		t.Errorf("got %v, want w-1 alone", got)
	}
}
