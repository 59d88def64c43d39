package sandbox

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkFilter is a start to its end in the process engine, `true`, with the default filter and without one, by turns,
// so that other programs' work falls on both. They are medians.
func BenchmarkFilter(b *testing.B) {
	of := map[bool][]time.Duration{}
	for b.Loop() {
		for _, unfiltered := range []bool{false, true} {
			t0 := time.Now()
			g, err := Process{}.StartGuard(b.Context(), Options{LogDir: b.TempDir(), Confine: Confinement{Unfiltered: unfiltered}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := g.Start(Spec{Attempt: 1, Argv: []string{"/bin/true"}, Dir: "/", Env: []string{}}); err != nil {
				b.Fatal(err)
			}
			for e := range g.Events() {
				if _, ok := e.(Empty); ok {
					break
				}
			}
			of[unfiltered] = append(of[unfiltered], time.Since(t0))
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for name, all := range map[string][]time.Duration{"filtered-ms": of[false], "unfiltered-ms": of[true]} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2].Seconds()*1000, name)
	}
}
