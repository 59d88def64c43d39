package conductor_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// TestStepLaws drives gangs through random lives. gang.write holds the laws of directives: (run, gen,
// act) and seq only grow, nothing follows a verdict, no budget exceeds its limit, nor do retries theirs. Here: a Step is a
// function of its arguments, and after a verdict it only cleans up.
func TestStepLaws(t *testing.T) {
	lives := 250
	if testing.Short() {
		lives = 60
	}
	verdicts := map[registry.Outcome]int{}
	top, anew, saved := 0, 0, 0
	for seed := range lives {
		l := &life{gang: newGang(t, randomFacts(rand.New(rand.NewPCG(uint64(seed), 1)))), rng: rand.New(rand.NewPCG(uint64(seed), 2))}
		l.settle()
		for range 150 {
			l.event()
			l.settle()
			l.checkPure()
			if l.dir.Act == registry.ActStop {
				l.checkStopped()
				verdicts[l.dir.Verdict.Outcome]++
				break
			}
		}
		top, anew, saved = max(top, l.dir.Gen), anew+l.dir.Retries.Used+l.dir.Retries.Free, saved+saves(l.dir)
	}
	t.Logf("verdicts %v, highest generation %d, %d retries, %d saves", verdicts, top, anew, saved)
	if verdicts[registry.Succeeded] == 0 || verdicts[registry.Failed] == 0 || verdicts[registry.Stopped] == 0 || top < 3 || anew == 0 || saved < lives/4 {
		t.Errorf("got verdicts %v, generations up to %d, %d retries and %d saves: these lives are too dull to show anything", verdicts, top, anew, saved)
	}
}

type life struct {
	*gang
	rng  *rand.Rand
	incs int
}

func randomFacts(rng *rand.Rand) conductor.Facts {
	scopes := []string{registry.ScopeInstance, registry.ScopeGang, registry.ScopeNever}
	scope := scopes[rng.IntN(len(scopes))]
	f := factsOf(component("ps", "ps", rng.IntN(2), scope), component("worker", "worker", 1+rng.IntN(3), scope),
		component("board", "service", rng.IntN(2), registry.ScopeInstance))
	if rng.IntN(2) == 0 {
		f.Components[1].Saves, f.SaveEvery = true, time.Duration(rng.IntN(3))*20*time.Second
	}
	f.GangBudget.Max, f.GangBudget.RefillCheckpoint = rng.IntN(4), rng.IntN(2) == 0
	if rng.IntN(3) == 0 {
		f.Components[1].After = []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}, {Component: "board", State: conductor.OrderInstalled}}
	}
	if rng.IntN(3) == 0 {
		f.Components[1].MinFailed = nil
	}
	if rng.IntN(3) == 0 {
		f.Components[1].MinSucceeded = new(1)
	}
	if rng.IntN(2) == 0 {
		f.Retry, f.RetryTransient = rng.IntN(4), rng.IntN(2) == 0
	}
	if rng.IntN(3) == 0 {
		f.Total = conductor.TotalFacts{MinSucceeded: rng.IntN(3), FailedShare: float64(rng.IntN(3)) / 2}
	}
	return f
}

// event lets one thing happen that could.
func (l *life) event() {
	all := l.facts.Instances(l.dir)
	i := all[l.rng.IntN(len(all))]
	name := i.String()
	m, live := l.records[i].Member, l.live[i]
	working := live && m.Phase == registry.PhaseReady && m.Gen == l.dir.Gen && l.dir.Act == registry.ActRun
	switch n := l.rng.IntN(100); {
	case n < 2:
		l.newConductor(fmt.Sprintf("c%d", l.rng.IntN(100)))
	case n < 4:
		l.pass(time.Duration(l.rng.IntN(12)) * time.Minute)
	case n < 5 && l.rng.IntN(4) == 0:
		stop := registry.Ask{Kind: registry.AskStop, ID: "s", By: "stop"}
		if l.rng.IntN(2) == 0 {
			stop.Args = map[string]string{"save": "30"}
		}
		l.asks = append(l.asks, stop)
	case n < 7:
		l.asks = append(l.asks, registry.Ask{Kind: registry.AskFlex, ID: fmt.Sprint("f", n), Args: map[string]string{"worker": fmt.Sprint(1 + l.rng.IntN(3))}})
	case n < 8:
		l.view.Trouble = time.Duration(l.rng.IntN(60)) * time.Second
	case n < 9:
		l.incs++
		l.asks = append(l.asks, registry.Ask{Kind: registry.AskSave, ID: fmt.Sprint("v", l.incs)})
	case live && n < 13 && saves(l.dir) > 0:
		l.saved(name)
	case !live && (m.Inc == "" || m.Phase == registry.PhaseLost || m.Phase == registry.PhaseLeft || n < 30):
		l.incs++
		l.join(name, fmt.Sprint("inc", l.incs), fmt.Sprint("h", l.rng.IntN(3)))
	case working && n < 60 && l.dir.Releases(i.Component) && m.Up < m.Gen:
		l.up(name)
	case live && !l.component(i).Waited && len(m.Exports) == 0 && n < 60:
		l.publish(name)
	case working && n < 14:
		l.fail(name, 1)
	case working && n < 16:
		l.failFinal(name, 1)
	case working && n < 20:
		l.end(name)
	case working && n < 22:
		l.leave(name)
	case live && n < 24:
		l.die(name)
	case live && (m.Phase != registry.PhaseEnded || m.Gen < l.dir.Retries.Gen) && m.Gen < l.dir.Gen && l.dir.Act == registry.ActWait:
		l.ack(name)
	}
}

func (l *life) checkPure() {
	l.t.Helper()
	c1, e1 := l.c.Step(l.now, l.view)
	c2, e2 := l.c.Step(l.now, l.view)
	if !reflect.DeepEqual(e1, e2) || !reflect.DeepEqual(c1, c2) {
		l.t.Fatalf("the same view gave\n%#v\n%#v", e1, e2)
	}
}

func (l *life) checkStopped() {
	l.t.Helper()
	for range 20 {
		l.now = l.now.Add(time.Hour)
		for _, e := range l.last {
			switch e.(type) {
			case conductor.CleanUp, conductor.StepDown:
			default:
				l.t.Fatalf("after the verdict: got %#v", e)
			}
		}
		l.run()
	}
}
