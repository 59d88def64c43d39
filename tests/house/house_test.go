package house

import (
	"maps"
	"slices"
	"testing"
)

// What a room may have; house.md of the contributors' guide says why.
const (
	mostCircle    = 12 // files that all reach each other
	mostBehaviour = 18 // fields of a struct with behaviour
	mostValue     = 25 // fields of a plain value
)

// Rooms that are not there yet: their figures may fall, and not rise. Whoever brings one down lowers its number here, or
// removes its line.
var (
	circles    = map[string]int{}
	behaviours = map[string]int{}
	values     = map[string]int{}
	functions  = map[string]int{}
)

// Figures of the whole house that are on their way to 0.
const (
	mostWide     = 0  // lines over Columns columns
	mostUnused   = 87 // exported names that no other room uses
	mostContexts = 3  // uses of context.Background outside of cmd and tests
)

func TestHouse(t *testing.T) {
	rooms, err := Measure("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) < 50 {
		t.Fatalf("only %d rooms are found", len(rooms))
	}
	var wide, unused []string
	contexts := 0
	for _, r := range rooms {
		hold(t, r.Path+": largest circle of files", r.Circle, mostCircle, circles[r.Path])
		for _, name := range slices.Sorted(maps.Keys(r.Behaviour)) {
			hold(t, r.Path+"."+name+": fields of a struct with behaviour", r.Behaviour[name], mostBehaviour, behaviours[r.Path+"."+name])
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			hold(t, r.Path+"."+name+": fields of a value", r.Values[name], mostValue, values[r.Path+"."+name])
		}
		for name, size := range r.Long {
			hold(t, r.Path+"."+name+": lines of a function", size, LongFunction, functions[r.Path+"."+name])
		}
		for _, at := range r.Background {
			t.Errorf("%s: context.Background without a reason: say in a comment what must outlive a cancelled context, or pass one in", at)
		}
		wide = append(wide, r.Wide...)
		for _, name := range r.Unused {
			unused = append(unused, r.Path+"."+name)
		}
		if r.Path != "cmd/muster" {
			contexts += r.Contexts
		}
	}
	total(t, "lines over 120 columns", len(wide), mostWide, wide)
	total(t, "exported names that no other room uses", len(unused), mostUnused, unused)
	total(t, "uses of context.Background outside of cmd/muster", contexts, mostContexts, nil)
}

// hold compares a figure with its limit, or with the one of a room that is not there yet.
func hold(t *testing.T, what string, got, limit, exception int) {
	t.Helper()
	switch {
	case exception > 0 && got < exception:
		t.Errorf("%s: %d now; lower its number in the lists of this file from %d, or remove it where it is within %d", what, got, exception, limit)
	case exception > 0 && got == exception, got <= limit:
	default:
		t.Errorf("%s: got %d, want at most %d", what, got, max(limit, exception))
	}
}

// total holds a figure of the whole house, which may fall and not rise.
func total(t *testing.T, what string, got, limit int, where []string) {
	t.Helper()
	if got == limit {
		return
	}
	if got < limit {
		t.Errorf("%s: %d now; lower the number in this file from %d", what, got, limit)
		return
	}
	const shown = 40
	t.Errorf("%s: got %d, want at most %d; among them %v", what, got, limit, where[:min(len(where), shown)])
}
