package conductor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

const large = 10_000

func largeFacts(n int) conductor.Facts {
	f := factsOf(component("chief", "chief", 1, registry.ScopeGang), component("worker", "worker", n-1, registry.ScopeGang))
	return f
}

// TestTenThousand forms a gang of 10,000 in virtual time, loses members, forms it again and ends it.
func TestTenThousand(t *testing.T) {
	g := newGang(t, largeFacts(large))
	g.settle()
	all := g.facts.Instances(g.dir)
	for i, in := range all {
		g.join(in.String(), "inc-"+in.String(), fmt.Sprint("h", i))
		g.ack(in.String())
		if i%1000 == 500 {
			g.pass(100 * time.Millisecond)
		}
		if i < len(all)-1 {
			g.want(registry.ActWait, 1)
		}
	}
	g.settle()
	g.want(registry.ActRun, 1)
	if len(g.roster.Rows) != large || g.dir.Roster.Chunks < 1 {
		t.Fatalf("got %d rows, %+v", len(g.roster.Rows), g.dir.Roster)
	}
	if g.reads > 20 {
		t.Errorf("got %d reads of records during the arrival, want few", g.reads)
	}

	g.fail("worker-77", 3)
	g.settle()
	g.want(registry.ActWait, 2)
	for i, in := range all {
		g.ack(in.String())
		if i%2000 == 0 {
			g.settle()
		}
	}
	g.settle()
	g.want(registry.ActRun, 2)

	for i := range 500 { // a rack is lost
		g.die(fmt.Sprint("worker-", i))
	}
	g.settle()
	g.pass(g.facts.Times.Lost)
	g.want(registry.ActWait, 3)
	for i := range 500 {
		g.join(fmt.Sprint("worker-", i), fmt.Sprint("again", i), fmt.Sprint("r", i))
	}
	g.all()
	g.want(registry.ActRun, 3)

	for i, in := range all {
		g.end(in.String())
		if i%2000 == 0 {
			g.settle()
		}
	}
	g.settle()
	g.wantVerdict(registry.Succeeded, registry.ClassNone, "", "all 10000 instances of chief, worker are done")
}

// BenchmarkStep is what one decision costs, by the size of the gang and what there is to decide.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{64, 1000, large} {
		waiting := newGang(b, largeFacts(n))
		waiting.settle()
		for _, in := range waiting.facts.Instances(waiting.dir)[:n/2] {
			waiting.join(in.String(), "inc-"+in.String(), "h")
			waiting.ack(in.String())
		}
		waiting.settle()
		b.Run(fmt.Sprintf("half of %d arrived", n), func(b *testing.B) { benchStep(b, waiting) })

		complete := running(b, largeFacts(n))
		b.Run(fmt.Sprintf("all of %d run", n), func(b *testing.B) { benchStep(b, complete) })

		sealing := newGang(b, largeFacts(n))
		sealing.settle()
		for _, in := range sealing.facts.Instances(sealing.dir) {
			sealing.join(in.String(), "inc-"+in.String(), "h")
			sealing.ack(in.String())
		}
		sealing.now = sealing.now.Add(time.Millisecond)
		sealing.readReady()
		sealing.c, _ = sealing.c.Step(sealing.now, sealing.view)
		sealing.readRecords(conductor.ReadRecords{All: true, Checkpoints: true})
		b.Run(fmt.Sprintf("seal %d", n), func(b *testing.B) { benchStep(b, sealing) })
	}
}

func benchStep(b *testing.B, g *gang) {
	b.ReportAllocs()
	for b.Loop() {
		g.c.Step(g.now, g.view)
	}
}
