package side_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/side"
)

// life lets a side process end like this, one after the other, on a clock of its own, and gives the times of its starts.
func life(rule side.Rule, ends ...side.End) (starts []time.Duration, last side.State) {
	now := time.Duration(0)
	for _, e := range ends {
		starts = append(starts, now)
		var pause time.Duration
		last, pause = side.Step(rule, last, e)
		if last.Over() {
			return starts, last
		}
		now += e.Lived + pause
	}
	return append(starts, now), last
}

func TestStep(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name   string
		rule   side.Rule
		ends   []side.End
		starts []time.Duration
		again  int
		over   bool
	}{
		{name: "once is enough", ends: []side.End{{OK: true, Lived: s}}, starts: []time.Duration{0}, over: true},
		{name: "once, though it failed", ends: []side.End{{Lived: s}}, starts: []time.Duration{0}, over: true},
		{name: "again after any end", rule: side.Rule{Restart: true}, ends: []side.End{{OK: true, Lived: 5 * s}}, starts: []time.Duration{0, 6 * s}, again: 1},
		{
			name: "the pause doubles up to a minute", rule: side.Rule{Restart: true}, ends: make([]side.End, 8), again: 8,
			starts: []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s, 123 * s, 183 * s},
		},
		{
			name: "a minute of life forgives", rule: side.Rule{Restart: true}, ends: []side.End{{}, {}, {Lived: time.Minute}, {}}, again: 4,
			starts: []time.Duration{0, 1 * s, 3 * s, 64 * s, 66 * s},
		},
		{
			name: "a moment less does not", rule: side.Rule{Restart: true}, ends: []side.End{{}, {Lived: time.Minute - 1}}, again: 2,
			starts: []time.Duration{0, 1 * s, 63*s - 1},
		},
		{name: "done with 0", rule: side.Rule{Restart: true, Finishes: true}, ends: []side.End{{}, {OK: true, Lived: s}}, starts: []time.Duration{0, 1 * s}, again: 1, over: true},
		{name: "not done with 1", rule: side.Rule{Restart: true, Finishes: true}, ends: []side.End{{Lived: s}}, starts: []time.Duration{0, 2 * s}, again: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			starts, last := life(tt.rule, tt.ends...)
			if diff := cmp.Diff(starts, tt.starts); diff != "" {
				t.Errorf("starts (-got +want):\n%s", diff)
			}
			if last.Restarts != tt.again || last.Over() != tt.over {
				t.Errorf("restarts %d, over %t, want %d, %t", last.Restarts, last.Over(), tt.again, tt.over)
			}
		})
	}
}

// A warning is due at the third restart in a row, and no longer after a minute of life.
func TestUnstable(t *testing.T) {
	short, long := side.End{Lived: time.Second}, side.End{Lived: side.StableAfter}
	for _, tt := range []struct {
		name string
		ends []side.End
		row  int
		want bool
	}{
		{"never restarted", nil, 0, false},
		{"twice", []side.End{short, short}, 2, false},
		{"three times", []side.End{short, {OK: true}, {}}, 3, true},
		{"still", []side.End{short, short, short, short}, 4, true},
		{"after a minute of life", []side.End{short, short, short, long}, 1, false},
		{"again after it", []side.End{short, long, short, short}, 3, true},
	} {
		if _, last := life(side.Rule{Restart: true}, tt.ends...); last.InRow != tt.row || last.Unstable() != tt.want {
			t.Errorf("%s: %d in a row, unstable %t, want %d, %t", tt.name, last.InRow, last.Unstable(), tt.row, tt.want)
		}
	}
}

func TestUnresponsive(t *testing.T) {
	for _, tt := range []struct {
		answered bool
		since    time.Duration
		want     bool
	}{
		{false, 119 * time.Second, false},
		{false, 2 * time.Minute, true},
		{true, 29 * time.Second, false},
		{true, 30 * time.Second, true},
	} {
		if got := side.Unresponsive(tt.answered, tt.since); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
