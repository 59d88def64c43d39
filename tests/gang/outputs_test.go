package gang

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestOutputs: what a gang leaves and saves, agreed on through a real Consul.
func TestOutputs(t *testing.T) {
	t.Parallel()
	at := place{consul: consulserver.Start(t, consulserver.Options{})}
	playAll(t, at, []scenario{
		{"named after the verdict by who comes back", namedByWhoComesBack},
		{"an end that counts is kept for who comes back before the verdict", endIsKept},
		{"an interrupted run keeps what was whole", interruptedKeepsWhatIsWhole},
		{"of a failure nothing is left, whoever is gone", nothingOfAFailure},
		{"saves go on with another conductor", savesWithAnotherConductor},
		{"stop saves first, whoever conducts", stopSavesFirst},
	})
}

// leaving is a gang of two workers whose folder model is left at out.
func leaving(t *testing.T, at place) (g *gang, out string, cast map[string]*actor) {
	g = newGang(t, at, workers(2, map[string]string{"muster.output.model": "out"}))
	cast = g.begin()
	for in := range cast {
		g.makes(in, "who", in)
	}
	return g, g.out(), cast
}

// out is where the folder model is left: in the file system of the app's own.
func (g *gang) out() string { return filepath.Join(g.work, "store", "out") }

// makes writes a file of an instance's output.
func (g *gang) makes(instance, name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.work, instance, "model", name), []byte(text), 0o644); err != nil { //nolint:gosec // as a process writes
		g.t.Fatal(err)
	}
}

// holds expects these files at a place, and no others; _temporary is none.
func (g *gang) holds(out, want string) {
	g.t.Helper()
	var got []string
	err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(out, path)
		if err == nil && !d.IsDir() && !strings.HasPrefix(name, "_temporary") {
			got = append(got, name+"="+read(path))
		}
		return err
	})
	if text := strings.Join(got, " "); err != nil || text != want {
		g.t.Errorf("at %s: got %s (%v), want %s", out, text, err, want)
	}
}

// parts are the worker that conducts, and the other, whose end holds nobody up.
func (g *gang) parts() (conductor, other string) {
	g.t.Helper()
	if conductor = g.conductor(); conductor == "worker-0" {
		return conductor, "worker-1"
	}
	return conductor, "worker-0"
}

// ends waits for the end of an instance's agent.
func (g *gang) ends(instance string, want int) {
	g.t.Helper()
	if code := g.agents[instance].wait(); code != want {
		g.t.Errorf("agent of %s ended with %d, want %d", instance, code, want)
	}
}

// counts waits until the end of an instance's process is in the registry.
func (g *gang) counts(instance string) {
	g.t.Helper()
	await(g.t, "the report of "+instance, func() bool { return g.member(instance).Phase == registry.PhaseEnded })
}

const bothLeft = "_SUCCESS= worker-0/who=worker-0 worker-1/who=worker-1"

func namedByWhoComesBack(t *testing.T, at place) {
	g, out, cast := leaving(t, at)
	conductor, victim := g.parts()
	cast[victim].exit(0)
	g.counts(victim)
	g.holds(out, "")
	g.agents[victim].kill()
	cast[conductor].exit(0)
	g.ends(conductor, 0)
	g.holds(out, conductor+"/who="+conductor) // no _SUCCESS: the victim's are not there
	for range 2 {                             // the second time there is nothing to do
		g.launch(victim)
		g.ends(victim, 0)
		g.holds(out, bothLeft)
	}
	if _, err := os.Stat(filepath.Join(out, "_temporary")); err == nil {
		t.Error("_temporary is left")
	}
}

func endIsKept(t *testing.T, at place) {
	g, out, cast := leaving(t, at)
	conductor, victim := g.parts()
	cast[victim].exit(0)
	g.counts(victim)
	g.agents[victim].kill()
	g.launch(victim)
	cast[conductor].exit(0)
	g.ends(conductor, 0)
	g.ends(victim, 0)
	g.holds(out, bothLeft)
}

func interruptedKeepsWhatIsWhole(t *testing.T, at place) {
	g, out, cast := leaving(t, at)
	conductor, first := g.parts()
	cast[first].exit(0)
	g.counts(first)
	for _, p := range g.agents {
		p.signal(syscall.SIGTERM)
	}
	cast[conductor].gone()
	for _, p := range g.agents {
		p.wait()
	}
	g.holds(out, "")
	g.launch(conductor)
	g.launch(first)
	// The first process is one of generation 1, or of 2 if the conductor knows by then that all agents are new; one of 1
	// may be stopped for that.
	g.finishes(conductor)
	g.ends(conductor, 0)
	g.ends(first, 0)
	g.holds(out, bothLeft)
}

// finishes has each process of an instance that starts end with 0, until its agent ends.
func (g *gang) finishes(instance string) {
	g.t.Helper()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for {
		select {
		case a := <-g.stage.entry(instance):
			_ = json.NewEncoder(a.conn).Encode(cue{Do: "exit"}) // it may have been stopped
		case <-g.agents[instance].Gone:
			return
		case <-dog.C:
			g.t.Fatalf("the agent of %s has not ended within %s", instance, watchdog)
		}
	}
}

func nothingOfAFailure(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.output.model": "out", "muster.restart": "never"}))
	cast := g.begin()
	conductor, victim := g.parts()
	g.makes(victim, "who", victim)
	cast[victim].exit(0)
	g.counts(victim)
	g.agents[victim].kill()
	cast[conductor].exit(3)
	g.ends(conductor, 3)
	g.launch(victim)
	g.ends(victim, 93)
	if left, err := os.ReadDir(g.out()); err != nil || len(left) > 0 {
		t.Errorf("a failure has left %v, %v", left, err)
	}
}

// saves runs muster save and gives its stamp.
func (g *gang) saves(want int) string {
	g.t.Helper()
	p := g.beginVerb("save", g.app, "--json")
	code := p.wait()
	var r struct {
		Stamp  string
		Saved  int
		Failed map[string]string
	}
	if err := json.Unmarshal([]byte(p.out()), &r); code != 0 || err != nil || r.Saved != want || len(r.Failed) > 0 {
		g.t.Fatalf("save: exit code %d, %v, %+v; want %d to save\n%s", code, err, r, want, p.err())
	}
	return r.Stamp
}

func savesWithAnotherConductor(t *testing.T, at place) {
	g, out, cast := leaving(t, at)
	first := g.saves(2)
	conductor := g.conductor()
	g.agents[conductor].kill()
	g.launch(conductor)
	cast[conductor] = g.stage.next(conductor)
	second := g.saves(2)
	if second <= first {
		t.Errorf("the second save is of %s, the first of %s", second, first)
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
	save := func(stamp string) string {
		dir := "interResult/interResult_" + stamp
		return dir + "/worker-0/who=worker-0 " + dir + "/worker-1/who=worker-1 "
	}
	g.holds(out, "_SUCCESS= "+save(first)+save(second)+"worker-0/who=worker-0 worker-1/who=worker-1")
}

func stopSavesFirst(t *testing.T, at place) {
	g, out, _ := leaving(t, at)
	verb := g.beginVerb("stop", g.app, "--save", "--grace", "0s")
	if code := verb.wait(); code != 0 {
		t.Errorf("stop --save ended with %d: %s", code, verb.err())
	}
	for in, p := range g.agents {
		if code := p.wait(); code != 0 {
			t.Errorf("agent of %s ended with %d", in, code)
		}
	}
	saved, err := filepath.Glob(filepath.Join(out, "interResult", "*", "worker-*", "who"))
	if err != nil || len(saved) != 2 {
		t.Errorf("saved before the stop: %v, %v", saved, err)
	}
}
