package house

import (
	"testing"
)

// What a room may have; house.md of the contributors' guide says why.
const (
	mostCircle    = 12 // files that all reach each other
	mostBehaviour = 18 // fields of a struct with behaviour
	mostValue     = 25 // fields of a plain value
)

// Figures of the whole house, which may fall and not rise. A change that lowers one lowers its number here.
const (
	mostWide     = 0  // lines over Columns columns
	mostUnused   = 84 // exported names that no other room uses
	mostContexts = 3  // uses of context.Background outside of cmd/muster and tests
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
		hold(t, r.Path+": largest circle of files", r.Circle, mostCircle)
		for name, n := range r.Behaviour {
			hold(t, r.Path+"."+name+": fields of a struct with behaviour", n, mostBehaviour)
		}
		for name, n := range r.Values {
			hold(t, r.Path+"."+name+": fields of a value", n, mostValue)
		}
		for name, n := range r.Long {
			hold(t, r.Path+"."+name+": lines of a function", n, LongFunction)
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

// hold compares a figure with its limit.
func hold(t *testing.T, what string, got, limit int) {
	t.Helper()
	if got > limit {
		t.Errorf("%s: got %d, want at most %d", what, got, limit)
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
