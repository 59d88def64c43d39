package bench

import (
	"os/exec"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox"
)

// cold is the pause before a cold start: long enough for the kernel's grace periods to have ended.
const cold = 100 * time.Millisecond

// BenchmarkStart is create + start + end of `true`. Cold: each after a pause; hot: ten of one kind back to back.
func BenchmarkStart(b *testing.B) {
	for _, way := range []struct {
		name  string
		block int
		pause time.Duration
	}{{"cold", 1, cold}, {"hot", 10, 0}} {
		b.Run(way.name, func(b *testing.B) {
			k := newBed(b)
			all := []contender{timed("exec", func() error { return exec.Command(k.trueProgram()).Run() })}
			for _, e := range k.engines(b) {
				all = append(all, k.whole(e))
			}
			compare(b, append(all, k.rivals(b)...), way.block, way.pause)
		})
	}
}

// BenchmarkRelease is release → exec of a guard that has been parked.
func BenchmarkRelease(b *testing.B) {
	k := newBed(b)
	var all []contender
	for _, e := range k.engines(b) {
		all = append(all, k.release(e))
	}
	compare(b, all, 1, cold)
}

// BenchmarkParts says where a whole start goes: park (create), start (exec), end (the process and all that it left), and
// close (what was created is taken away).
func BenchmarkParts(b *testing.B) {
	k := newBed(b)
	for _, e := range k.engines(b) {
		b.Run(e.name, func(b *testing.B) {
			var g *sandbox.Guard
			compare(b, []contender{
				timed("park", func() (err error) { g, err = k.park(e); return err }),
				timed("start", func() error { _, err := g.Start(e.spec()); return err }),
				timed("end", func() error { _, err := awaitEmpty(g); return err }),
				timed("close", func() error { return g.Close() }),
			}, 1, 0)
		})
	}
}
