package explorer

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	if os.Getenv("SWEEP") == "" {
		t.Skip()
	}
	all := large()
	names := slices.Sorted(maps.Keys(all))
	shapes := map[string]string{}
	for _, n := range names {
		s := all[n]
		s.shapes = shapes
		for k := range 5 {
			s.walk(uint64(k), 400)
		}
	}
	var rules []rule
	for _, h := range []string{noTimers, noGrace, noVerdict, noWaiting, noProof, noFence, noMismatch, noNewcomers, noClean, noStrays, noProlonged, noSuperior, noHolders, noContact, noFounding, noCarry} {
		rules = append(rules, rule{Hook: h})
	}
	txns := map[string]bool{}
	for _, n := range shapes {
		txns[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(txns)) {
		rules = append(rules, rule{Txn: n, Verb: anyCheck})
	}
	single := map[rule]bool{}
	for sh, n := range shapes {
		for _, o := range strings.Split(sh, ", ") {
			v, k, _ := strings.Cut(o, " ")
			single[rule{Txn: n, Verb: v, Key: k}] = true
		}
	}
	singles := slices.SortedFunc(maps.Keys(single), func(a, b rule) int { return strings.Compare(a.String(), b.String()) })
	for _, r := range singles {
		if strings.HasPrefix(r.Verb, "check") || r.Verb == verbCAS {
			rules = append(rules, r)
		}
	}
	for _, r := range singles {
		if strings.HasPrefix(r.Verb, "delete") || r.Verb == verbLock {
			rules = append(rules, r)
		}
	}
	fmt.Println(len(rules))
	for _, r := range rules {
		found := ""
		began := time.Now()
	outer:
		for round := range 8 {
			for _, n := range names {
				s := all[n]
				s.Without = r
				for k := range 30 {
					seed := uint64(round*30 + k + 1)
					f := s.walk(seed, 400)
					if f.bad != "" {
						found = fmt.Sprintf("%q seed %d: %.100s", n, seed, f.bad)
						break outer
					}
				}
				if time.Since(began) > 12*time.Second {
					break outer
				}
			}
		}
		fmt.Printf("%-50s %5.1fs %s\n", r, time.Since(began).Seconds(), found)
	}
}
