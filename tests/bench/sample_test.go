package bench

import (
	"slices"
	"testing"
	"time"
)

// contender is one way to start `true` and to see its end and that nothing of it is left.
type contender struct {
	name string
	run  func() (time.Duration, error)
}

// timed makes a contender of what is to be measured as a whole.
func timed(name string, run func() error) contender {
	return contender{name, func() (time.Duration, error) {
		begin := time.Now()
		err := run()
		return time.Since(begin), err
	}}
}

// compare runs each contender block times, each time after a pause, and all of them again in the next round, so that
// what else the machine does meets all of them alike. It reports median and 90th percentile in ms.
func compare(b *testing.B, all []contender, block int, pause time.Duration) {
	b.Helper()
	took := make([][]time.Duration, len(all))
	for b.Loop() {
		for i, c := range all {
			for range block {
				time.Sleep(pause)
				d, err := c.run()
				if err != nil {
					b.Fatalf("%s: %v", c.name, err)
				}
				took[i] = append(took[i], d)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of a round, which is nobody's
	for i, c := range all {
		slices.Sort(took[i])
		b.ReportMetric(ms(took[i][len(took[i])/2]), c.name+":median-ms")
		b.ReportMetric(ms(took[i][len(took[i])*9/10]), c.name+":p90-ms")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
