package gang

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestRetry plays what muster.retry and the counts over the whole app decide, as `muster run`.
func TestRetry(t *testing.T) {
	t.Parallel()
	playAll(t, place{run: true}, []scenario{
		{"no retry", noRetry},
		{"twice", retriedTwice},
		{"what has ended starts again", endedStartsAgain},
		{"what would happen again is not retried", neverRetried},
		{"what PAI does not count", transientRetried},
		{"after a success too", retriedAlways},
		{"staging", stagingRetried},
		{"enough successes of all", totalSucceeded},
		{"one failure of a half", oneOfTheHalf},
		{"half have failed", halfFailed},
	})
}

// TestRetryConsul plays what only agents one by one can show.
func TestRetryConsul(t *testing.T) {
	t.Parallel()
	at := place{consul: consulserver.Start(t, consulserver.Options{})}
	playAll(t, at, []scenario{
		{"twice", retriedTwice},
		{"the count outlives its conductor", retryOutlivesConductor},
		{"one that died after its end", deadStartsAgain},
	})
}

// alone are workers that no restart of their own helps.
func alone(n int, more ...string) definition {
	return workers(n, with(map[string]string{"muster.restart": "never"}, more...))
}

// PAI's retryCount 0: one failure is the end, though nothing was ever tried again.
func noRetry(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.dialect": "pai", "muster.retry": "0"}))
	cast := g.begin()
	cast["worker-1"].exit(3)
	g.fails(registry.ClassApp, "worker-1", 3, 93)
	cast["worker-0"].gone()
	for _, name := range g.def.instances() {
		if n := g.stage.starts(name); n != 1 {
			t.Errorf("%s was started %d times, want once", name, n)
		}
	}
}

// A program that fails twice and then does its work.
func retriedTwice(t *testing.T, at place) {
	g := newGang(t, at, alone(2, "muster.retry", "2"))
	cast := g.begin()
	for n, words := range []string{"gang restarted after worker-1 exited with 5 (retry 1 of 2)", "gang restarted after worker-1 exited with 5 (retry 2 of 2"} {
		cast["worker-1"].exit(5)
		cast["worker-0"].gone()
		g.sees("worker-0", "stopping", words)
		cast = g.cast(g.def.instances()...)
		for name, a := range cast {
			if a.generation() != n+2 || a.attempt() != n+2 {
				t.Errorf("%s: generation %d, attempt %d, want %d and %d", name, a.generation(), a.attempt(), n+2, n+2)
			}
		}
	}
	for _, a := range cast {
		a.exit(0)
	}
	if e := g.succeeds(); g.run != nil && e.result.Generations != 3 {
		t.Errorf("result: %d generations, want 3", e.result.Generations)
	}
}

// In the instance scope a result holds for the run; a retry makes it the old run's. Accounts begin again too.
func endedStartsAgain(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.retry": "1", "muster.restart.budget": "1"}))
	cast := g.begin()
	cast["worker-0"].exit(0)
	g.sees("worker-0", "finishing", "exited with 0")
	cast["worker-1"].exit(4)
	g.stage.next("worker-1").exit(4)
	cast = g.cast(g.def.instances()...)
	cast["worker-1"].exit(4)
	again := g.stage.next("worker-1") // in place: the account was fresh
	if again.generation() != 2 {
		t.Errorf("generation %d, want 2", again.generation())
	}
	cast["worker-0"].stays()
	again.exit(4)
	g.fails(registry.ClassApp, "worker-1", 4, 93)
	cast["worker-0"].gone()
}

// A shell tells of an illegal instruction: the program would do it again.
func neverRetried(t *testing.T, at place) {
	g := newGang(t, at, alone(2, "muster.retry", "-1"))
	g.begin()["worker-0"].exit(132)
	g.fails(registry.ClassApp, "worker-0", 132, 93)
}

// A signal from outside is nothing that a PAI job is charged for; its own failure is.
func transientRetried(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.dialect": "pai"}))
	cast := g.begin()
	cast["worker-0"].kill()
	g.sees("worker-1", "stopping", "gang restarted after worker-0 was killed by SIGKILL (not counted)")
	cast = g.cast(g.def.instances()...)
	cast["worker-1"].exit(1)
	g.fails(registry.ClassApp, "worker-1", 1, 93)
}

// PAI's retryCount -2: a success is no end. muster stop is.
func retriedAlways(t *testing.T, at place) {
	g := newGang(t, at, alone(1, "muster.retry", "-2"))
	g.begin()["worker-0"].exit(0)
	again := g.stage.next("worker-0")
	if again.generation() != 2 {
		t.Errorf("generation %d, want 2", again.generation())
	}
	g.sees("worker-0", "installed", "gang restarted after all 1 instances of worker are done (retry 1)")
	if _, code := g.verb("stop", g.app); code != 0 {
		t.Errorf("muster stop: exit code %d, want 0", code)
	}
	g.stopped(0)
}

// Who could not be staged makes room for an agent that stages anew.
func stagingRetried(t *testing.T, at place) {
	g := newGang(t, at, alone(2, "muster.retry", "5"))
	inTheWay := filepath.Join(g.work, "worker-1")
	for _, path := range []string{inTheWay, filepath.Join(g.work, ".package.stamp"), filepath.Join(g.work, ".instance-worker-1")} { // the folders are muster's, or they would be refused
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g.launchAll()
	g.sees("worker-1", "finishing", inTheWay)
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	for _, a := range g.cast(g.def.instances()...) {
		a.exit(0)
	}
	g.succeeds()
}

// Two tasks of four are enough, whoever they are; the others are ended with them.
func totalSucceeded(t *testing.T, at place) {
	def := training(3, map[string]string{"muster.restart": "never", "muster.complete.total.minSucceeded": "2"})
	g := newGang(t, at, def)
	cast := g.begin()
	cast["worker-2"].exit(0)
	g.sees("worker-2", "finishing", "exited with 0")
	cast["worker-0"].stays()
	cast["ps-0"].exit(0)
	for _, name := range []string{"worker-0", "worker-1"} {
		cast[name].gone()
	}
	if e := g.succeeds(); e.verdict.Cause != "2 of 2 instances asked for have ended with 0" {
		t.Errorf("cause %q", e.verdict.Cause)
	}
}

// A success in which somebody failed says so.
func oneOfTheHalf(t *testing.T, at place) {
	g := newGang(t, at, alone(4, "muster.complete.minFailed", "null", "muster.complete.total.minFailed", "50%"))
	cast := g.begin()
	cast["worker-1"].exit(1)
	g.sees("worker-1", "finishing", "exited with 1")
	for _, name := range []string{"worker-0", "worker-2", "worker-3"} {
		cast[name].exit(0)
	}
	e := g.succeeds()
	if want := "all 4 instances of worker are done; failed: worker-1 (exited with 1)"; e.verdict.Cause != want {
		t.Errorf("cause %q, want %q", e.verdict.Cause, want)
	}
}

func halfFailed(t *testing.T, at place) {
	g := newGang(t, at, alone(4, "muster.complete.minFailed", "null", "muster.complete.total.minFailed", "50%"))
	cast := g.begin()
	cast["worker-1"].exit(1)
	g.sees("worker-1", "finishing", "exited with 1")
	cast["worker-3"].exit(2)
	e := g.fails(registry.ClassApp, "worker-1", 1, 93)
	if !strings.Contains(e.verdict.Cause, "2 of 4 instances have failed") {
		t.Errorf("cause %q, want the count in it", e.verdict.Cause)
	}
}

// How often the gang was formed anew stands in the directive.
func retryOutlivesConductor(t *testing.T, at place) {
	g := newGang(t, at, alone(3, "muster.retry", "3"))
	g.begin()["worker-1"].exit(5)
	cast := g.cast(g.def.instances()...)
	name := g.conductor()
	g.agents[name].kill()
	cast[name].gone()
	g.launch(name) // in the scope never a death is a failure: retry 2
	cast = g.castOf(3, g.def.instances()...)
	if d, _ := g.directive(); d.Retries.Used != 2 || d.Retries.Gen != 3 {
		t.Errorf("retries %+v, want 2, the last in generation 3", d.Retries)
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// An instance ended with 0, and then its agent died. A retry wants it back; before, nobody could have its index.
func deadStartsAgain(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.retry": "1", "muster.restart.budget": "0"}))
	cast := g.begin()
	cast["worker-0"].exit(0)
	g.sees("worker-0", "finishing", "exited with 0")
	await(t, "the result of worker-0", func() bool { return g.member("worker-0").Phase == registry.PhaseEnded })
	kill(t, g.agents["worker-0"].PID, syscall.SIGKILL)
	cast["worker-1"].exit(4)
	g.launch("worker-0")
	for name, a := range g.cast(g.def.instances()...) {
		if a.generation() != 2 {
			t.Errorf("%s: generation %d, want 2", name, a.generation())
		}
		a.exit(0)
	}
	g.succeeds()
}
