package gang

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// A process that fails starts again in place: same generation, same ports, from the newest whole
// checkpoint. Nobody else notices.
func restartInPlace(t *testing.T, at place) {
	g := newGang(t, at, training(2, nil))
	cast := g.begin()
	first := cast["worker-1"]
	if first.attempt() != 1 || first.generation() != 1 || first.env("MUSTER_CHECKPOINT") != "" {
		t.Errorf("first start: attempt %d, generation %d, checkpoint %q, want 1, 1 and none", first.attempt(), first.generation(), first.env("MUSTER_CHECKPOINT"))
	}
	first.do(cue{Do: "listen"})
	first.do(cue{Do: "save", N: 7})
	first.do(cue{Do: "save", N: 30})
	first.kill()

	second := g.stage.next("worker-1")
	if second.attempt() != 2 || second.generation() != 1 || second.port() != first.port() {
		t.Errorf("second start: attempt %d, generation %d, port %d, want 2, 1, %d", second.attempt(), second.generation(), second.port(), first.port())
	}
	if got, want := second.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-30"); got != want {
		t.Errorf("second start: checkpoint %q, want %q", got, want)
	}
	second.do(cue{Do: "listen"}) // the port is its own again
	g.sees("worker-1", "backoff", "killed by SIGKILL; restarting 1/5")

	for _, name := range []string{"ps-0", "worker-0"} {
		cast[name].stays()
		if n := g.stage.starts(name); n != 1 {
			t.Errorf("%s was started %d times, want once", name, n)
		}
	}
	cast["worker-0"].exit(0)
	second.exit(0)
	e := g.succeeds()
	if g.run != nil && (e.result.Restarts != 1 || e.result.Generations != 1) {
		t.Errorf("result: %d restarts, %d generations, want 1, 1", e.result.Restarts, e.result.Generations)
	}
}

// muster.resume.args come with a checkpoint only: appended, or where the command says so.
func resumeArguments(t *testing.T, at place) {
	def := workers(2, map[string]string{"muster.resume.args": "--resume {{checkpoint}} --step {{checkpoint.step}} --dir {{checkpoint.dir}}"})
	g := newGang(t, at, def)
	cast := g.begin()
	one := cast["worker-0"]
	if len(one.Args) != 0 {
		t.Errorf("arguments without a checkpoint: %q, want none", one.Args)
	}
	one.do(cue{Do: "save", N: 12})
	one.exit(3)
	dir := filepath.Join(g.work, "checkpoint")
	want := []string{"--resume", filepath.Join(dir, "ckpt-12"), "--step", "12", "--dir", dir}
	again := g.stage.next("worker-0")
	if !slices.Equal(again.Args, want) {
		t.Errorf("arguments with a checkpoint: %q, want %q", again.Args, want)
	}
	again.exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
}

// One failure more than the budget is the end: the first's own code, and 93 for those who fell with it.
func budgetSpent(t *testing.T, at place) {
	g := newGang(t, at, workers(3, map[string]string{"muster.restart.budget": "2"}))
	cast := g.begin()
	cast["worker-1"].exit(7)
	g.stage.next("worker-1").exit(7)
	g.stage.next("worker-1").exit(7)
	e := g.fails(registry.ClassApp, "worker-1", 7, 93)
	for _, words := range []string{"worker-1 exited with 7", "after 2 restarts"} {
		if !strings.Contains(e.verdict.Cause, words) {
			t.Errorf("cause %q, want %q in it", e.verdict.Cause, words)
		}
	}
	for _, name := range []string{"worker-0", "worker-2"} {
		cast[name].gone()
	}
	if n := g.stage.starts("worker-1"); n != 3 {
		t.Errorf("worker-1 was started %d times, want 3", n)
	}
	var x exitFile
	g.readJSON(g.log("worker-1", "exit.json"), &x)
	if x.Exit == nil || x.Exit.Code == nil || *x.Exit.Code != 7 || x.Attempt != 3 {
		t.Errorf("exit.json of worker-1: %+v, want code 7 of attempt 3", x)
	}
}

// A newer checkpoint empties the account of restarts.
func budgetRefilled(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart.budget": "1"}))
	g.begin()["worker-1"].exit(1)
	two := g.stage.next("worker-1")
	two.do(cue{Do: "save", N: 5})
	g.agentSays("worker-1", `msg="checkpoint found" step=5`)
	two.exit(1)
	g.stage.next("worker-1").exit(1) // no newer checkpoint since
	e := g.fails(registry.ClassApp, "worker-1", 1, 93)
	if n := g.stage.starts("worker-1"); n != 3 {
		t.Errorf("worker-1 was started %d times, want 3; %s", n, e.verdict.Cause)
	}
}

// A restart counts for as long as the window says.
func budgetWindow(t *testing.T, at place) {
	const window = 1500 * time.Millisecond
	g := newGang(t, at, workers(1, map[string]string{"muster.restart.budget": "1", "muster.restart.window": fmt.Sprint(window.Seconds())}))
	g.begin()["worker-0"].exit(1)
	two := g.stage.next("worker-0")
	restarted := g.sees("worker-0", "backoff", "restarting 1/1")
	// The promise is about a duration: it has to pass.
	await(t, "the end of the window", func() bool { return time.Since(restarted.At) > window })
	two.exit(1)
	g.stage.next("worker-0").exit(0)
	g.succeeds()
}

// A program that finds its port taken right after its start may try again three times at no cost.
func addressInUse(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart.budget": "0"}))
	cast := g.begin()
	fails := func(a *actor) {
		a.do(cue{Do: "say", Text: "bind: Address already in use"})
		a.exit(1)
	}
	port := cast["worker-1"].port()
	fails(cast["worker-1"])
	for range 2 {
		a := g.stage.next("worker-1")
		if a.port() != port {
			t.Errorf("port %d after a retry, want %d again", a.port(), port)
		}
		fails(a)
	}
	last := g.stage.next("worker-1")
	if last.attempt() != 4 {
		t.Errorf("attempt %d after three free retries, want 4", last.attempt())
	}
	fails(last)
	g.fails(registry.ClassNetwork, "worker-1", 69, 69)
}

// Where the command says itself where it wants the checkpoint, nothing is appended.
func resumePlaceholders(t *testing.T, at place) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := newGang(t, at, workers(1, map[string]string{
		"muster.command":     fmt.Sprintf(`exec %q %s "from={{checkpoint}}" "step={{checkpoint.step}}" "dir={{checkpoint.dir}}"`, self, puppetVerb),
		"muster.resume.args": "--resume {{checkpoint}}",
	}))
	dir := filepath.Join(g.work, "checkpoint")
	one := g.begin()["worker-0"]
	if want := []string{"from=", "step=", "dir=" + dir}; !slices.Equal(one.Args, want) {
		t.Errorf("arguments without a checkpoint: %q, want %q", one.Args, want)
	}
	one.do(cue{Do: "save", N: 8})
	one.exit(1)
	two := g.stage.next("worker-0")
	if want := []string{"from=" + filepath.Join(dir, "ckpt-8"), "step=8", "dir=" + dir}; !slices.Equal(two.Args, want) {
		t.Errorf("arguments with a checkpoint: %q, want %q", two.Args, want)
	}
	two.exit(0)
	g.succeeds()
}

// The pause before a restart doubles with each failure in a row, up to its upper end.
func backoffGrows(t *testing.T, at place) {
	g := newGang(t, at, workers(1, map[string]string{"muster.restart.backoff": "0.4s..0.8s"}))
	a := g.begin()["worker-0"]
	for range 4 {
		a.exit(1)
		a = g.stage.next("worker-0")
	}
	a.exit(0)
	g.succeeds()
	var pauses []time.Duration
	all := g.events("worker-0")
	for i := 1; i < len(all); i++ {
		if all[i-1].To == "backoff" && all[i].To == "running" {
			pauses = append(pauses, all[i].At.Sub(all[i-1].At))
		}
	}
	// A quarter is jitter; how much longer it takes is the machine's business.
	least := []time.Duration{0, 290 * time.Millisecond, 590 * time.Millisecond, 590 * time.Millisecond}
	for i, want := range least {
		if len(pauses) != len(least) || pauses[i] < want {
			t.Fatalf("pauses %s, want at least %s", pauses, least)
		}
	}
}

// The whole gang restarts at once for the first time; each further restart waits as long as muster.restart.backoff says,
// and says so.
func gangBacksOff(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart": "gang", "muster.restart.backoff": "2..3"}))
	cast := g.begin()
	for n, want := range []time.Duration{0, 2 * time.Second, 3 * time.Second} {
		cast["worker-1"].kill()
		died := time.Now()
		cast = g.castOf(n+2, g.def.instances()...)
		if waited := time.Since(died); waited < want { // no timing: a pause cannot be shorter
			t.Errorf("generation %d began %s after the death, want a pause of %s", n+2, waited, want)
		}
		d, _ := g.directive()
		if d.Gen != n+2 || d.Pause() != want {
			t.Errorf("generation %d: a pause of %s in generation %d, want %s", d.Gen, d.Pause(), n+2, want)
		}
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}
