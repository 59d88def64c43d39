package conductor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// savers have a parameter server without outputs and two workers with some.
func savers(every time.Duration) conductor.Facts {
	f := factsOf(component("ps", "ps", 1, registry.ScopeInstance), component("worker", "worker", 2, registry.ScopeInstance))
	f.Components[1].Saves, f.SaveEvery = true, every
	return f
}

func (g *gang) ask(kind, id string, args map[string]string) {
	g.asks = append(g.asks, registry.Ask{Kind: kind, ID: id, By: "stop", Args: args})
	g.settle()
}

func (g *gang) wantSave(seq int, stamp string, asks ...string) {
	g.t.Helper()
	s := g.dir.Save
	if s == nil && seq == 0 {
		return
	}
	if s == nil || s.Seq != seq || s.Stamp != stamp || !slices.Equal(s.Asks, asks) {
		g.t.Fatalf("got save %+v, want %d of %s for %v", s, seq, stamp, asks)
	}
}

// One save answers all who have asked by then; the next begins when all have answered, those who fail, end or go included.
func TestSavesOneAtATime(t *testing.T) {
	g := running(t, savers(0))
	at := func(d time.Duration) string { return g.now.Add(d).UTC().Format("2006_01_02_15_04_05") }
	stamp := at(time.Millisecond)
	g.ask(registry.AskSave, "a", nil)
	g.wantSave(1, stamp, "a")
	if len(g.asks) != 0 {
		t.Fatalf("an ask is left: %v", g.asks)
	}
	g.ask(registry.AskSave, "b", nil)
	g.ask(registry.AskSave, "c", nil)
	g.pass(time.Minute)
	g.wantSave(1, stamp, "a")
	g.saved("worker-0")
	g.pass(10 * time.Second)
	g.wantSave(1, stamp, "a")
	g.end("worker-1") // its end has its own upload
	stamp = at(time.Millisecond)
	g.settle()
	g.wantSave(2, stamp, "b", "c")
	g.saved("worker-0")
	g.ask(registry.AskSave, "d", nil) // in the same second
	g.pass(3 * time.Second)
	if g.wantSave(3, g.dir.Save.Stamp, "d"); g.dir.Save.Stamp <= stamp {
		t.Errorf("save 3 has the stamp %s, save 2 %s", g.dir.Save.Stamp, stamp)
	}
	g.want(registry.ActRun, 1)
}

func TestSavesByTheClock(t *testing.T) {
	g := running(t, savers(10*time.Minute))
	g.pass(9 * time.Minute)
	g.wantSave(0, "")
	g.pass(2 * time.Minute)
	g.wantSave(1, g.dir.Save.Stamp)
	g.pass(time.Hour) // nobody has answered
	g.wantSave(1, g.dir.Save.Stamp)
	g.saved("worker-0")
	g.saved("worker-1")
	g.pass(3 * time.Second)
	g.wantSave(2, g.dir.Save.Stamp)
	before := g.dir.Save.Stamp
	g.saved("worker-0")
	g.saved("worker-1")
	g.newConductor("c2") // its clock begins anew
	g.pass(9 * time.Minute)
	g.wantSave(2, before)
	g.pass(2 * time.Minute)
	g.wantSave(3, g.dir.Save.Stamp)
}

func TestSaveThatCanNeverBe(t *testing.T) {
	f := savers(time.Minute)
	f.Components[1].Saves = false
	g := running(t, f)
	g.ask(registry.AskSave, "a", nil)
	g.pass(time.Hour)
	if g.dir.Save != nil || len(g.asks) != 0 {
		t.Errorf("got %+v, asks %v; want none", g.dir.Save, g.asks)
	}
}

// While a generation forms nothing runs that could be saved.
func TestSaveWaitsForTheRun(t *testing.T) {
	g := newGang(t, savers(0))
	g.ask(registry.AskSave, "a", nil)
	g.pass(time.Minute)
	g.wantSave(0, "")
	g.all()
	g.want(registry.ActRun, 1)
	g.wantSave(1, g.dir.Save.Stamp, "a")
}

func TestStopSavesFirst(t *testing.T) {
	stop := map[string]string{"save": "600", "who": "me"}
	t.Run("all save", func(t *testing.T) {
		g := running(t, savers(0))
		g.ask(registry.AskSave, "a", nil)
		g.ask(registry.AskStop, "s", stop)
		g.saved("worker-0")
		g.saved("worker-1")
		g.pass(3 * time.Second)
		g.wantSave(2, g.dir.Save.Stamp, "s")
		g.saved("worker-0")
		g.pass(time.Minute)
		g.want(registry.ActRun, 1)
		g.saved("worker-1")
		g.pass(3 * time.Second)
		g.wantVerdict(registry.Stopped, registry.ClassStopped, "", "stopped by me")
	})
	t.Run("not for ever", func(t *testing.T) {
		g := running(t, savers(0))
		g.ask(registry.AskStop, "s", stop)
		g.pass(599 * time.Second)
		g.want(registry.ActRun, 1)
		g.pass(2 * time.Second)
		g.wantVerdict(registry.Stopped, registry.ClassStopped, "", "stopped by me")
	})
	t.Run("another does not wait", func(t *testing.T) {
		g := running(t, savers(0))
		g.ask(registry.AskStop, "s", stop)
		g.want(registry.ActRun, 1)
		g.ask(registry.AskStop, "t", nil)
		g.wantVerdict(registry.Stopped, registry.ClassStopped, "", "stopped")
	})
	t.Run("nothing runs", func(t *testing.T) {
		g := newGang(t, savers(0))
		g.ask(registry.AskStop, "s", stop)
		g.wantVerdict(registry.Stopped, registry.ClassStopped, "", "stopped by me")
	})
	t.Run("the job ends meanwhile", func(t *testing.T) {
		g := running(t, savers(0))
		g.ask(registry.AskStop, "s", stop)
		g.end("worker-0")
		g.end("worker-1")
		g.settle()
		g.wantVerdict(registry.Succeeded, "", "", "all 2 instances of worker are done")
	})
	t.Run("no number", func(t *testing.T) {
		for _, limit := range []string{"", "soon", "-1", "NaN", "1e99"} {
			g := running(t, savers(0))
			g.ask(registry.AskStop, "s", map[string]string{"save": limit})
			g.want(registry.ActStop, 1)
		}
	})
}
