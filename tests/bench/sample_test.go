package bench

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cost is what one start took on the clock, and of the processors: user and system time of all processes in it.
type cost struct{ Clock, CPU time.Duration }

// contender is one way to start `true` and to see its end and that nothing of it is left.
type contender struct {
	name string
	run  func() (cost, error)
}

// timed makes a contender of what is to be measured as a whole.
func timed(name string, run func() error) contender {
	return contender{name, func() (cost, error) { return spent(run) }}
}

// spent measures run and those of our children that are reaped during it.
func spent(run func() error) (cost, error) {
	cpu, err := consumed()
	if err != nil {
		return cost{}, err
	}
	begin := time.Now()
	if err := run(); err != nil {
		return cost{}, err
	}
	c := cost{Clock: time.Since(begin)}
	after, err := consumed()
	c.CPU = after - cpu
	return c, err
}

func consumed() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			return 0, err
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum, nil
}

// compare runs each contender block times, each time after a pause, and all of them again in the next round, so that
// what else the machine does meets all of them alike. It reports in ms: median and 90th percentile on the clock, and the
// mean of the processors' time, which a busy machine changes least.
func compare(b *testing.B, all []contender, block int, pause time.Duration) {
	b.Helper()
	clock := make([][]time.Duration, len(all))
	cpu := make([]time.Duration, len(all))
	for b.Loop() {
		for i, c := range all {
			for range block {
				time.Sleep(pause)
				d, err := c.run()
				if err != nil {
					b.Fatalf("%s: %v", c.name, err)
				}
				clock[i], cpu[i] = append(clock[i], d.Clock), cpu[i]+d.CPU
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of a round, which is nobody's
	for i, c := range all {
		n := len(clock[i])
		slices.Sort(clock[i])
		b.ReportMetric(ms(clock[i][n/2]), c.name+":median-ms")
		b.ReportMetric(ms(clock[i][n*9/10]), c.name+":p90-ms")
		b.ReportMetric(ms(cpu[i]/time.Duration(n)), c.name+":cpu-ms")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
