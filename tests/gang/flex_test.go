package gang

import (
	"encoding/json"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestFlex: the counts of a running app change.
func TestFlex(t *testing.T) {
	t.Parallel()
	at := place{consul: consulserver.Start(t, consulserver.Options{})}
	playAll(t, at, []scenario{
		{"up", flexUp},
		{"up, claimed", flexClaimed},
		{"in place", flexInPlace},
		{"in place, from elsewhere", flexMoved},
		{"down", flexDown},
		{"up, and taken back", flexTakenBack},
		{"services only", flexServices},
		{"refused", flexRefused},
		{"to the same", flexToTheSame},
		{"the conductor itself is let go", flexWithoutConductor},
	})
	t.Run("muster run", func(t *testing.T) {
		t.Parallel()
		runFlexes(t, place{run: true})
	})
	t.Run("muster run goes on", func(t *testing.T) {
		t.Parallel()
		runKeepsCounts(t, place{consul: at.consul, run: true})
	})
	t.Run("muster run --detach goes on", func(t *testing.T) {
		t.Parallel()
		detachedKeepsCounts(t, place{consul: at.consul, run: true})
	})
}

// flex is muster flex with the counts, to its end.
func (g *gang) flex(args ...string) (out, err string, code int) {
	g.t.Helper()
	p := g.beginVerb("flex", append([]string{g.app}, args...)...)
	code = p.wait()
	return p.out(), p.err(), code
}

// flexes expects that the counts are in force.
func (g *gang) flexes(want string, args ...string) {
	g.t.Helper()
	out, said, code := g.flex(args...)
	if code != 0 || !strings.HasSuffix(strings.TrimSpace(out), want) {
		g.t.Errorf("flex %v: exit code %d, %q, %q, want 0, %q", args, code, out, said, want)
	}
}

// formed waits for one process of each instance in a generation and checks what it was told.
func (g *gang) formed(generation, world int, instances ...string) map[string]*actor {
	g.t.Helper()
	cast := g.cast(instances...)
	for name, a := range cast {
		if a.generation() != generation || a.number("MUSTER_WORLD_SIZE") != world {
			g.t.Errorf("%s: generation %d of %d, want %d of %d", name, a.generation(), a.number("MUSTER_WORLD_SIZE"), generation, world)
		}
	}
	return cast
}

// One more: nobody stops before it is there, then all form a new generation from the checkpoint.
func flexUp(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	cast := g.begin()
	cast["worker-0"].do(cue{Do: "save", N: 40})
	verb := g.beginVerb("flex", g.app, "worker=3", "--json")
	verb.says("waiting for worker-2 (muster run starts it; elsewhere start its agent)")
	for _, a := range cast {
		a.stays()
	}
	g.launch("worker-2")
	for _, a := range cast {
		a.gone()
	}
	for _, a := range g.formed(2, 3, "worker-0", "worker-1", "worker-2") {
		if got, want := a.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-40"); got != want {
			t.Errorf("%s: checkpoint %q, want %q", a.Name, got, want)
		}
		cast[a.Name] = a
	}
	var report struct {
		App            string
		Before, Counts map[string]int
		Generation     int
	}
	if code := verb.wait(); code != 0 {
		t.Errorf("flex ended with %d", code)
	}
	if err := json.Unmarshal([]byte(verb.out()), &report); err != nil || report.Before["worker"] != 2 || report.Counts["worker"] != 3 || report.Generation != 2 {
		t.Errorf("flex --json: %v, %+v", err, report)
	}
	var app registry.AppRecord
	g.decode("app", g.keys()["app"].value, &app)
	if app.Counts["worker"] != 3 {
		t.Errorf("the app's record has %v", app.Counts)
	}
	if d, _ := g.directive(); d.Budget.Used != 0 {
		t.Errorf("budget used %d, want a flex to be free", d.Budget.Used)
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// An agent without an index claims one that a flex has added.
func flexClaimed(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	first := g.begin()
	verb := g.beginVerb("flex", g.app, "worker=2")
	verb.says("waiting for worker-1 (muster run starts it; elsewhere start its agent)")
	more := start(t, "agent without an index", g.environment(), "agent", "--app", g.dir, "--app-id", g.app,
		"--registry", at.consul.URL(), "--host", "127.0.0.1", "--work-dir", g.work, "--state-dir", g.state)
	if code := verb.wait(); code != 0 {
		t.Errorf("flex ended with %d", code)
	}
	first["worker-0"].stays()
	first["worker-0"].exit(0)
	g.formed(1, 2, "worker-1")["worker-1"].exit(0)
	if code := more.wait(); code != 0 {
		t.Errorf("the agent that claimed worker-1 ended with %d, want 0", code)
	}
	g.succeeds()
}

// Processes that are not told of each other run through a flex: only the difference starts and stops.
func flexInPlace(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	out, said, code := g.flex("worker=3", "--explain")
	if code != 0 || !strings.Contains(out, "starts: worker-2\n") || !strings.Contains(out, "restarts: none") {
		t.Errorf("flex --explain: exit code %d, %q, %q", code, out, said)
	}
	verb := g.beginVerb("flex", g.app, "worker=3")
	verb.says("waiting for worker-2 (muster run starts it; elsewhere start its agent)")
	g.launch("worker-2")
	if code := verb.wait(); code != 0 || !strings.Contains(verb.out(), "worker 2 to 3, in generation 1") {
		t.Errorf("flex ended with %d: %q", code, verb.out())
	}
	cast["worker-2"] = g.formed(1, 3, "worker-2")["worker-2"]
	cast["worker-2"].do(cue{Do: "trap"})
	g.flexes("worker 3 to 2, in generation 1", "worker=2")
	cast["worker-2"].hearsTerm()
	verb = g.beginVerb("flex", g.app, "worker=3")
	verb.says("waiting for worker-2, which an earlier flex removed, to be gone")
	cast["worker-2"].kill()
	if code := g.agents["worker-2"].wait(); code != 0 {
		t.Errorf("the agent that was let go ended with %d, want 0", code)
	}
	delete(g.agents, "worker-2")
	verb.says("waiting for worker-2 (muster run starts it; elsewhere start its agent)")
	g.launch("worker-2")
	cast["worker-2"] = g.formed(1, 3, "worker-2")["worker-2"]
	if code := verb.wait(); code != 0 {
		t.Errorf("flex ended with %d: %q", code, verb.err())
	}
	if d, _ := g.directive(); d.Gen != 1 || d.Budget.Used != 0 {
		t.Errorf("generation %d, budget used %d, want 1, 0", d.Gen, d.Budget.Used)
	}
	cast["worker-1"].kill() // restarts stay as they were
	again := g.cast("worker-1")["worker-1"]
	if again.attempt() != 2 || again.generation() != 1 {
		t.Errorf("attempt %d of generation %d after a kill, want 2 of 1", again.attempt(), again.generation())
	}
	cast["worker-1"] = again
	for _, a := range cast {
		a.stays()
		a.exit(0)
	}
	g.succeeds()
	for in, want := range map[string]int{"worker-0": 1, "worker-1": 2, "worker-2": 2} {
		if n := g.stage.starts(in); n != want {
			t.Errorf("%s was started %d times, want %d", in, n, want)
		}
	}
}

// A replacement that comes up at another port takes its place while the others run.
func flexMoved(t *testing.T, at place) {
	def := workers(2, nil)
	def.components[0].port = true
	g := newGang(t, at, def)
	cast := g.begin()
	port := cast["worker-1"].port()
	g.agents["worker-1"].signal(syscall.SIGTERM)
	cast["worker-1"].gone()
	if code := g.agents["worker-1"].wait(); code != 143 {
		t.Errorf("the agent ended with %d, want 143", code)
	}
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	delete(g.agents, "worker-1")
	g.launch("worker-1")
	next := g.formed(1, 2, "worker-1")["worker-1"]
	if next.port() == port {
		t.Errorf("port %d, which another program has", port)
	}
	cast["worker-0"].stays()
	cast["worker-0"].exit(0)
	next.exit(0)
	g.succeeds()
}

// One less: it leaves with 0, the others go on without it.
func flexDown(t *testing.T, at place) {
	g := newGang(t, at, workers(3, gangScoped))
	cast := g.begin()
	cast["worker-1"].do(cue{Do: "save", N: 7})
	g.flexes("worker 3 to 2, in generation 2", "worker=2")
	for _, a := range cast {
		a.gone()
	}
	if code := g.agents["worker-2"].wait(); code != 0 {
		t.Errorf("the agent that was let go ended with %d, want 0", code)
	}
	if m := g.member("worker-2"); m.Phase != registry.PhaseLeft || m.Exit == nil || m.Exit.Class != registry.ClassFlex {
		t.Errorf("record of worker-2: %s, %+v", m.Phase, m.Exit)
	}
	for _, a := range g.formed(2, 2, "worker-0", "worker-1") {
		if a.env("MUSTER_CHECKPOINT") == "" {
			t.Errorf("%s starts without its checkpoint", a.Name)
		}
		a.exit(0)
	}
	g.succeeds()
	if n := g.stage.starts("worker-2"); n != 1 {
		t.Errorf("worker-2 was started %d times, want once", n)
	}
}

// Nobody came: the request stands until it is taken back, and nothing has stopped.
func flexTakenBack(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	cast := g.begin()
	if _, said, code := g.flex("worker=4", "--wait", "3s"); code != 76 || !strings.Contains(said, "worker-2, worker-3") {
		t.Errorf("flex: exit code %d, %q, want 76, naming worker-2, worker-3", code, said)
	}
	g.flexes("nothing changes, in generation 1", "worker=2")
	for _, a := range cast {
		a.stays()
		a.exit(0)
	}
	g.succeeds()
}

// Services come and go beside the gang.
func flexServices(t *testing.T, at place) {
	def := workers(1, nil)
	def.components = append(def.components, component{name: "tensorboard", count: 1, port: true})
	g := newGang(t, at, def)
	cast := g.begin()
	g.flexes("tensorboard 1 to 2, in generation 1", "tensorboard=2")
	g.launch("tensorboard-1")
	second := g.stage.next("tensorboard-1")
	g.flexes("tensorboard 2 to 0, in generation 1", "tensorboard=0")
	second.gone()
	cast["tensorboard-0"].gone()
	for _, in := range []string{"tensorboard-0", "tensorboard-1"} {
		if code := g.agents[in].wait(); code != 0 {
			t.Errorf("the agent of %s ended with %d, want 0", in, code)
		}
	}
	cast["worker-0"].stays()
	cast["worker-0"].exit(0)
	g.succeeds()
	if n := g.stage.starts("worker-0"); n != 1 {
		t.Errorf("worker-0 was started %d times, want once", n)
	}
}

func flexRefused(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	g.reshape(func(application object) {
		for _, c := range application["components"].([]any) { //nolint:forcetypeassert // it was written as one
			c.(object)["minInstanceCount"], c.(object)["maxInstanceCount"] = "1", "4"
		}
	})
	cast := g.begin()
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"worker=9"}, 65, "worker: got 9, want at most maxInstanceCount, which is 4"},
		{[]string{"worker=0"}, 65, "worker: got 0, want at least minInstanceCount, which is 1"},
		{[]string{"reader=1"}, 64, "no component reader; there are worker"},
		{[]string{"worker=many"}, 64, "want COMPONENT=COUNT"},
		{[]string{"worker=2", "worker=3"}, 64, "got both 2 and 3"},
	} {
		if _, said, code := g.flex(tc.args...); code != tc.code || !strings.Contains(said, tc.want) {
			t.Errorf("flex %v: exit code %d, %q, want %d, %q", tc.args, code, said, tc.code, tc.want)
		}
	}
	nobody := newGang(t, at, workers(1, nil))
	rest := nobody.begin()
	if _, said, code := nobody.flex("worker=0"); code != 65 || !strings.Contains(said, "muster stop "+nobody.app+" ends it") {
		t.Errorf("flex to nobody: exit code %d, %q", code, said)
	}
	rest["worker-0"].stays()
	rest["worker-0"].exit(0)
	nobody.succeeds()
	g.launch("worker-3") // nobody has asked for it
	if code := g.agents["worker-3"].wait(); code != 64 {
		t.Errorf("an agent beyond the counts ended with %d, want 64", code)
	}
	if said := g.agents["worker-3"].err(); !strings.Contains(said, "worker-3") {
		t.Errorf("it said %q, want itself named", said)
	}
	delete(g.agents, "worker-3")
	cast["worker-0"].stays()
	cast["worker-0"].exit(0)
	g.succeeds()
	if _, said, code := g.flex("worker=2"); code == 0 || !strings.Contains(said, "is over") {
		t.Errorf("flex after the end: exit code %d, %q", code, said)
	}
}

func flexToTheSame(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	cast := g.begin()
	before, _ := g.directive()
	g.flexes("nothing changes, in generation 1", "worker=2")
	if d, _ := g.directive(); d.Seq != before.Seq {
		t.Errorf("directive %d after %d, want the same", d.Seq, before.Seq)
	}
	for name := range g.keys() {
		if strings.HasPrefix(name, "ask/") {
			t.Errorf("%s stands", name)
		}
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// Whoever conducts may be among those that leave: another goes on.
func flexWithoutConductor(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	g.launch("worker-1")
	g.agentSays("worker-1", "conducting")
	g.launch("worker-0")
	g.cast("worker-0", "worker-1")
	g.flexes("worker 2 to 1, in generation 2", "worker=1")
	if code := g.agents["worker-1"].wait(); code != 0 {
		t.Errorf("the conductor's agent ended with %d, want 0", code)
	}
	g.formed(2, 1, "worker-0")["worker-0"].exit(0)
	g.succeeds()
}

// muster run launches whom a flex adds and lets go whom it takes away, as often as one likes.
func runFlexes(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	g.begin()
	g.flexes("worker 2 to 3, in generation 2", "worker=3")
	g.formed(2, 3, "worker-0", "worker-1", "worker-2")
	g.flexes("worker 3 to 1, in generation 3", "worker=1")
	g.formed(3, 1, "worker-0")
	g.flexes("worker 1 to 2, in generation 4", "worker=2")
	for _, a := range g.formed(4, 2, "worker-0", "worker-1") {
		a.exit(0)
	}
	e := g.succeeds()
	if e.result.Generations != 4 || e.result.Restarts < 3 {
		t.Errorf("result: %d generations, %d restarts, want 4, 3 or more", e.result.Generations, e.result.Restarts)
	}
	if n := g.stage.starts("worker-2"); n != 1 {
		t.Errorf("worker-2 was started %d times, want once", n)
	}
}

// An interrupted run goes on with the counts that it had.
func runKeepsCounts(t *testing.T, at place) {
	g := newGang(t, at, workers(1, gangScoped))
	g.begin()
	g.flexes("worker 1 to 2, in generation 2", "worker=2")
	cast := g.formed(2, 2, "worker-0", "worker-1")
	g.run.signal(syscall.SIGTERM)
	for _, a := range cast {
		a.gone()
	}
	if code := g.run.wait(); code != 143 {
		t.Errorf("muster run ended with %d, want 143", code)
	}
	g.launchAll()
	for _, a := range g.formed(3, 2, "worker-0", "worker-1") {
		a.exit(0)
	}
	g.succeeds()
}

// detachedKeepsCounts: a run that is resumed in the background is waited for with the counts that it has now.
func detachedKeepsCounts(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	g.begin()
	g.flexes("worker 2 to 1, in generation 2", "worker=1")
	for _, a := range g.formed(2, 1, "worker-0") {
		g.run.signal(syscall.SIGTERM)
		a.gone()
	}
	if code := g.run.wait(); code != 143 {
		t.Errorf("muster run ended with %d, want 143", code)
	}
	args := slices.DeleteFunc(g.runArgs(), func(arg string) bool { return arg == "--json" })
	p := start(t, "muster run --detach", g.environment(), append(args, "--detach")...)
	if code := p.wait(); code != 0 || !strings.Contains(p.out(), "; 1 instance installed\n") {
		t.Errorf("muster run --detach: exit code %d, %q, %q", code, p.out(), p.err())
	}
	if stop := g.beginVerb("stop", g.app); stop.wait() != 0 {
		t.Errorf("muster stop: %q", stop.err())
	}
}
