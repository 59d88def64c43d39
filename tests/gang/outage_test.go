package gang

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// Consul goes while a gang runs, and comes back with its data: nothing stops meanwhile, what happened
// meanwhile counts afterwards, and the run ends right.
func TestConsulIsAway(t *testing.T) {
	t.Parallel()
	server := consulserver.Start(t, consulserver.Options{})
	g := newGang(t, place{consul: server}, training(3, map[string]string{"muster.restart.budget": "2"}))
	cast := g.begin()

	server.Kill()
	for _, name := range g.def.instances() {
		g.agentSays(name, "registry unreachable, process continues")
	}
	v := g.view("ps")
	if v.AwaySince == nil || v.Phase != "running" {
		t.Errorf("muster ps while Consul is away: %+v, want running and since when", v)
	}
	// In the dark: one ends well, one fails and comes back in place.
	cast["worker-0"].exit(0)
	cast["worker-1"].exit(9)
	again := g.stage.next("worker-1")
	if again.attempt() != 2 || again.port() != cast["worker-1"].port() {
		t.Errorf("restart without Consul: attempt %d, port %d, want 2, %d", again.attempt(), again.port(), cast["worker-1"].port())
	}

	server.Restart()
	for _, name := range g.def.instances() {
		g.agentSays(name, "registry answers again")
	}
	await(t, "what happened in the dark in the records", func() bool {
		return g.member("worker-0").Phase == registry.PhaseEnded && g.member("worker-1").Budget.Used == 1
	})
	for _, name := range []string{"ps-0", "worker-2"} {
		cast[name].stays()
		if n := g.stage.starts(name); n != 1 {
			t.Errorf("%s was started %d times, want once", name, n)
		}
	}
	if d, _ := g.directive(); d.Gen != 1 {
		t.Errorf("generation %d, want 1 still", d.Gen)
	}
	again.exit(0)
	cast["worker-2"].exit(0)
	g.succeeds()
}

// Consul is away for longer than a session lives, in the middle of real training.
func TestConsulIsAwayFor30Seconds(t *testing.T) {
	t.Parallel()
	server := consulserver.Start(t, consulserver.Options{})
	g := newTraining(t, place{consul: server}, 2)
	g.launchAll("--instances", g.instancesArg(), "--set", "site.global.train.steps=1000", "--set", "site.global.train.pace=0.06") // a minute at least
	g.checkpointBeyond(100)
	pids := g.processes()

	server.Stop()
	gone := time.Now()
	for _, name := range g.def.instances() {
		g.agentSays(name, "registry unreachable, process continues")
	}
	before := g.newestCheckpoint()
	// The promise is about a duration, which is longer than sessions and renewals: it has to pass.
	await(t, "30 seconds without Consul", func() bool { return time.Since(gone) > 30*time.Second })
	g.checkpointBeyond(before) // trained on in the dark
	g.sameProcesses(pids)

	server.Restart()
	for _, name := range g.def.instances() {
		g.agentSays(name, "registry answers again")
	}
	g.sameProcesses(pids)
	g.learned(g.endWithin(3 * time.Minute))
	for _, name := range g.def.instances() {
		var x exitFile
		g.readJSON(g.log(name, "exit.json"), &x)
		if x.Attempt != 1 || x.Generation != 1 {
			t.Errorf("%s: attempt %d, generation %d at the end, want 1, 1", name, x.Attempt, x.Generation)
		}
	}
}

// Consul comes back without its data: nothing stops, nothing is founded anew, it is named; then the
// operator ends it.
func TestConsulLostItsData(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(*gang)
		code int
	}{
		{"muster stop", func(g *gang) {
			// It stops the agents of this host; nobody can ask those of others.
			if out, code := g.verb("stop", g.app); code != 69 || !strings.Contains(out, "interrupted") {
				g.t.Errorf("muster stop: %q, exit code %d, want interrupted, 69", out, code)
			}
		}, 143},
		{"TERM", func(g *gang) {
			for _, p := range g.agents {
				p.signal(syscall.SIGTERM)
			}
		}, 143},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := consulserver.Start(t, consulserver.Options{})
			g := newGang(t, place{consul: server}, training(1, nil))
			cast := g.begin()

			server.Kill()
			server.RestartEmpty()
			for _, name := range g.def.instances() {
				g.agentSays(name, "registry lost its data")
			}
			g.unmoved(cast, "")
			for _, in := range g.view("ps").Instances {
				if in.Phase != "running" || !strings.Contains(in.Cause, "registry lost its data") {
					t.Errorf("muster ps: %+v, want running and the loss named", in)
				}
			}
			// A process that fails now still comes back: this needs no registry.
			cast["worker-0"].kill()
			cast["worker-0"] = g.stage.next("worker-0")
			for name := range g.keys() {
				t.Errorf("key %s, want none: nothing is founded anew", name)
			}

			tt.end(g)
			for _, a := range cast {
				a.gone()
			}
			g.interruptedWith(tt.code)
			for name := range g.keys() {
				if !strings.HasPrefix(name, "ask/") {
					t.Errorf("key %s after the end, want none", name)
				}
			}
		})
	}
}

// The app's keys are deleted under a running gang. A newcomer starts nothing; muster adopt writes everything again, and the
// run goes on as if nothing had been: a dead agent is replaced, and the verdict comes.
func TestConsulDataDeleted(t *testing.T) {
	t.Parallel()
	server := consulserver.Start(t, consulserver.Options{})
	g := newGang(t, place{consul: server}, training(2, nil))
	cast := g.begin()
	if out, code := g.verb("adopt", g.app); code == 0 {
		t.Errorf("muster adopt before the loss: %q, want it refused", out)
	}

	g.deleteKeys("")
	for _, name := range g.def.instances() {
		g.agentSays(name, "registry lost its data, process continues")
	}
	g.unmoved(cast, "")
	g.agents["worker-1"].kill()
	cast["worker-1"].gone()
	g.launch("worker-1")
	g.agents["worker-1"].says("registry lost its data, agent waits")
	g.agents["worker-1"].says("agents of it live")
	for name := range g.keys() {
		t.Errorf("key %s, want none: nothing is founded anew", name)
	}
	out, code := g.verb("adopt", g.app)
	if code != 0 || !strings.Contains(out, "generation 1 is in the registry again") {
		t.Fatalf("muster adopt: %q, exit code %d", out, code)
	}
	for _, name := range []string{"ps-0", "worker-0"} {
		g.agentSays(name, "attached to the index again")
	}
	// Once the session of the one that was killed has ended, its successor comes, at another port; the others run on.
	cast["worker-1"] = g.castOf(1, "worker-1")["worker-1"]
	cast["ps-0"].stays()
	for _, name := range []string{"worker-0", "worker-1"} {
		cast[name].exit(0)
	}
	g.succeeds()
}

// What muster stop has asked is lost, as by a snapshot that is restored, before the conductor has seen it. The stop that
// waits asks again.
func TestStopAsksAgain(t *testing.T) {
	t.Parallel()
	g := newGang(t, place{consul: consulserver.Start(t, consulserver.Options{})}, workers(2, nil))
	g.begin()
	conductor := g.agents[g.conductor()]
	conductor.signal(syscall.SIGSTOP)
	stop := g.beginVerb("stop", g.app)
	await(t, "what muster stop asks", func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(g.keys())), func(name string) bool {
			return strings.HasPrefix(name, "ask/stop/")
		})
	})
	g.deleteKeys("ask/")
	conductor.signal(syscall.SIGCONT)
	if code := stop.wait(); code != 0 || !strings.Contains(stop.out(), "stopped") {
		t.Errorf("muster stop: %q, exit code %d, want stopped, 0", stop.out(), code)
	}
	g.stopped(0)
}

// deleteKeys deletes the keys of the app below a folder, as `consul kv delete -recurse` does. The sessions stay.
func (g *gang) deleteKeys(folder string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodDelete, "http://"+g.place.consul.HTTPAddr+"/v1/kv/muster/"+g.app+"/"+folder+"?recurse", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("delete the keys: %s", resp.Status)
	}
}

// newTraining is a gang of catalog:handwriting with one parameter server.
func newTraining(t *testing.T, at place, workers int) *gang {
	t.Helper()
	g := blankGang(t, at)
	g.def, g.dir = training(workers, nil), "catalog:handwriting"
	return g
}

// instancesArg is --instances for the gang's counts.
func (g *gang) instancesArg() string {
	var all []string
	for _, c := range g.def.components {
		all = append(all, fmt.Sprintf("%s=%d", c.name, c.count))
	}
	return strings.Join(all, ",")
}

var checkpointLine = regexp.MustCompile(`(?m)^checkpoint step (\d+)$`)

// newestCheckpoint is the step that the parameter server saved last, 0 before the first.
func (g *gang) newestCheckpoint() int {
	g.t.Helper()
	all := checkpointLine.FindAllStringSubmatch(read(g.log("ps-0", "stdout.log")), -1)
	if len(all) == 0 {
		return 0
	}
	step, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil {
		g.t.Fatal(err)
	}
	return step
}

func (g *gang) checkpointBeyond(step int) {
	g.t.Helper()
	await(g.t, fmt.Sprintf("a checkpoint beyond step %d", step), func() bool { return g.newestCheckpoint() > step })
}

var startedLine = regexp.MustCompile(`msg="process started" pid=(\d+)`)

// processes are the pids of the instances' processes, as their agents logged them.
func (g *gang) processes() map[string]int {
	g.t.Helper()
	pids := map[string]int{}
	for _, name := range g.def.instances() {
		all := startedLine.FindAllStringSubmatch(read(g.log(name, "agent.log")), -1)
		if len(all) == 0 {
			g.t.Fatalf("%s has not started", name)
		}
		pids[name], _ = strconv.Atoi(all[len(all)-1][1])
	}
	return pids
}

func (g *gang) sameProcesses(want map[string]int) {
	g.t.Helper()
	for name, pid := range g.processes() {
		if pid != want[name] || !lives(pid) {
			g.t.Errorf("process of %s: pid %d, lives %t, want %d still", name, pid, lives(pid), want[name])
		}
	}
}

// endWithin is end for a training that takes its time.
func (g *gang) endWithin(limit time.Duration) ending {
	g.t.Helper()
	if g.run != nil {
		g.run.waitFor(limit)
	}
	for _, p := range g.agents {
		p.waitFor(limit)
	}
	return g.succeeds()
}

// learned expects that the training has come to something.
func (g *gang) learned(ending) {
	g.t.Helper()
	_, text, ok := strings.Cut(read(g.log("worker-0", "stdout.log")), "accuracy ")
	accuracy, err := strconv.ParseFloat(strings.SplitN(text, "\n", 2)[0], 64)
	if !ok || err != nil || accuracy < 0.93 {
		g.t.Errorf("accuracy %q, want 0.93 at least", text)
	}
}

// A whole training as one command with a real Consul: a worker and the parameter server are killed by
// muster signal, both come back from a checkpoint, it can be looked at while it runs and afterwards.
func TestTrainingWithConsul(t *testing.T) {
	t.Parallel()
	server := consulserver.Start(t, consulserver.Options{})
	g := newTraining(t, place{consul: server, run: true}, 3)
	g.launchAll("--instances", g.instancesArg(),
		"--set", "site.global.train.steps=800", "--set", "site.global.train.pace=0.02")
	g.checkpointBeyond(100)
	v := g.view("ps", "--registry", server.URL())
	if v.Phase != "running" || len(v.Instances) != 4 || v.Conductor == nil {
		t.Errorf("muster ps --registry while it runs: %+v", v)
	}
	if out, code := g.verb("signal", g.app+"/worker-1", "KILL"); code != 0 {
		t.Fatalf("muster signal worker-1 KILL: %q, exit code %d", out, code)
	}
	g.outputSays("worker-1", `(?m)^resuming at step [1-9]`)
	saved := g.newestCheckpoint()
	if out, code := g.verb("signal", g.app+"/ps-0", "KILL"); code != 0 {
		t.Fatalf("muster signal ps-0 KILL: %q, exit code %d", out, code)
	}
	restored := g.outputSays("ps-0", `(?m)^restored from step (\d+)$`)
	if step, err := strconv.Atoi(restored[1]); err != nil || step < saved {
		t.Errorf("ps-0 came back from step %s, want %d or later", restored[1], saved)
	}
	e := g.endWithin(3 * time.Minute)
	g.learned(e)
	if e.result.Restarts != 2 || e.result.Generations != 1 {
		t.Errorf("result: %d restarts, %d generations, want 2, 1", e.result.Restarts, e.result.Generations)
	}

	server.Stop() // from now on only files can answer
	out, code := g.verb("ps", g.app, "--json")
	var after view
	if err := json.Unmarshal([]byte(out), &after); err != nil || code != 0 || after.Outcome == nil || *after.Outcome != "succeeded" {
		t.Errorf("muster ps after the end, without Consul: exit code %d, %v: %s", code, err, out)
	}
	if out, code := g.verb("logs", g.app+"/worker-0"); code != 0 || !strings.Contains(out, "accuracy ") {
		t.Errorf("muster logs after the end: exit code %d, %q", code, child.Tail(out, 5))
	}
}

// outputSays waits for a line of an instance's process.
func (g *gang) outputSays(instance, pattern string) []string {
	g.t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	await(g.t, fmt.Sprintf("%s in the output of %s", pattern, instance), func() bool {
		found = re.FindStringSubmatch(read(g.log(instance, "stdout.log")))
		return found != nil
	})
	return found
}

// Consul goes while a gang gathers: it gathers on afterwards.
func TestConsulIsAwayAtTheBarrier(t *testing.T) {
	t.Parallel()
	server := consulserver.Start(t, consulserver.Options{})
	g := newGang(t, place{consul: server}, workers(2, nil))
	g.launch("worker-0")
	g.sees("worker-0", "waiting", "")
	server.Kill()
	g.agentSays("worker-0", "registry unreachable")
	server.Restart()
	g.launch("worker-1")
	for _, a := range g.cast("worker-0", "worker-1") {
		a.exit(0)
	}
	g.succeeds()
}

// Consul is away for good: an agent that is told to go still goes, and says no verdict.
func TestLeavingWithoutConsul(t *testing.T) {
	t.Parallel()
	server := consulserver.Start(t, consulserver.Options{})
	g := newGang(t, place{consul: server}, workers(2, nil))
	cast := g.begin()
	server.Kill()
	for _, p := range g.agents {
		p.signal(syscall.SIGTERM)
	}
	for _, a := range cast {
		a.gone()
	}
	g.interruptedWith(143)
}
