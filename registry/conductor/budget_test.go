package conductor_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

func TestCharge(t *testing.T) {
	rule := conductor.BudgetRule{Max: 2, Window: time.Minute, RefillCheckpoint: true}
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	var b registry.Budget
	for i, tc := range []struct {
		at   int
		step int64
		ok   bool
		used int
	}{
		{0, 0, true, 1},
		{10, 0, true, 2},
		{20, 0, false, 2},
		{59, 0, false, 2},
		{60, 0, true, 2}, // the first is out of the window
		{61, 0, false, 2},
		{62, 5, true, 1}, // a checkpoint since
		{63, 5, true, 2},
		{64, 5, false, 2},
		{64, 4, false, 2}, // an older one
		{500, 0, true, 1},
	} {
		var ok bool
		if b, ok = conductor.Charge(b, rule, at(tc.at), tc.step); ok != tc.ok || b.Used != tc.used {
			t.Errorf("charge %d at %d: got %v, used %d, want %v, %d", i, tc.at, ok, b.Used, tc.ok, tc.used)
		}
	}
}

// TestChargeLaws: a budget never exceeds its limit, and -1 never refuses.
func TestChargeLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		rule := conductor.BudgetRule{Max: rng.IntN(5) - 1, Window: time.Duration(rng.IntN(3)) * time.Minute, RefillCheckpoint: rng.IntN(2) == 0}
		var b registry.Budget
		now, step := t0, int64(0)
		for range 30 {
			now = now.Add(time.Duration(rng.IntN(60)) * time.Second)
			step += int64(rng.IntN(10) / 9)
			before := b
			var ok bool
			b, ok = conductor.Charge(b, rule, now, step)
			switch {
			case rule.Max >= 0 && (b.Used > rule.Max || len(b.At) > rule.Max):
				t.Fatalf("%+v: used %d, %d remembered", rule, b.Used, len(b.At))
			case rule.Max < 0 && !ok:
				t.Fatalf("%+v refused", rule)
			case !ok && b.Used > before.Used:
				t.Fatalf("%+v: charged although refused", rule)
			}
		}
	}
}

// The window is judged by the clocks of several hosts: one that is off by some time forgets a restart that much earlier or
// later, and never more.
func TestChargeByClocksThatDiffer(t *testing.T) {
	rule := conductor.BudgetRule{Max: 3, Window: time.Hour}
	for _, off := range []time.Duration{-20 * time.Minute, -time.Second, 0, time.Second, 20 * time.Minute} {
		var b registry.Budget
		for n := range 3 {
			b, _ = conductor.Charge(b, rule, t0.Add(time.Duration(n)*time.Second), 0)
		}
		before := t0.Add(time.Hour - 3*time.Second - max(off, 0)) // by the true time
		if _, ok := conductor.Charge(b, rule, before.Add(off), 0); ok {
			t.Errorf("%s off: a restart was forgotten %s after the first", off, before.Sub(t0))
		}
		after := t0.Add(time.Hour + 3*time.Second + max(-off, 0))
		if _, ok := conductor.Charge(b, rule, after.Add(off), 0); !ok {
			t.Errorf("%s off: no restart was forgotten %s after the first", off, after.Sub(t0))
		}
	}
}
