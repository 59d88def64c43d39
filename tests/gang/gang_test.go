package gang

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// place is where a gang plays: as `muster run` with its embedded registry or with a Consul, or as agents
// that the test starts one by one, with a Consul.
type place struct {
	consul *consulserver.Server // nil: embedded
	run    bool                 // `muster run` starts the agents; always so with the embedded registry
}

func (p place) agents() bool { return p.consul != nil && !p.run }

// gang is one app of a test with everything that belongs to it. Methods end the test on errors.
type gang struct {
	t     testing.TB
	place place
	def   definition
	stage *stage

	app   string // app id
	dir   string // of the definition, or catalog:NAME
	work  string
	state string

	run    *process            // of `muster run`; nil where agents are started one by one
	agents map[string]*process // the newest of each instance
}

// newGang prepares an app of puppets; nothing runs yet.
func newGang(t testing.TB, at place, def definition) *gang {
	t.Helper()
	g := blankGang(t, at)
	g.def, g.stage, g.dir = def, openStage(t), filepath.Join(t.TempDir(), "app")
	def.write(t, g.dir, g.stage.address)
	return g
}

func blankGang(t testing.TB, at place) *gang {
	t.Helper()
	g := &gang{t: t, place: at, app: "t" + strings.ToLower(rand.Text()[:10]), work: folder.Temp(t, "tg-"), agents: map[string]*process{}}
	var err error
	if g.state, err = os.MkdirTemp("", "muster-state-"); err != nil { //nolint:usetesting // short: a socket's path has 107 bytes
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.dump()
		}
		if err := os.RemoveAll(g.state); err != nil {
			t.Error(err)
		}
	})
	return g
}

// environment of every muster of a test: nothing of who runs the test, so no launcher either.
func (g *gang) environment(more ...string) []string {
	// Puppets live in the host's namespaces: they are reached by its folders and ended by its numbers.
	all := []string{"MUSTER_AGENT_ENGINE=process", "PATH=" + os.Getenv("PATH"), "HOME=" + g.work, "TMPDIR=" + os.TempDir(), "LANG=C"}
	if race, ok := os.LookupEnv("GORACE"); ok { // for a MUSTER_BINARY with the race detector
		all = append(all, "GORACE="+race)
	}
	return append(all, more...)
}

// begin starts all instances, and expects a process of each of them.
func (g *gang) begin(args ...string) map[string]*actor {
	g.t.Helper()
	g.launchAll(args...)
	return g.cast(g.def.instances()...)
}

// launchAll starts all instances.
func (g *gang) launchAll(args ...string) {
	g.t.Helper()
	if g.place.agents() {
		for _, in := range g.def.instances() {
			g.launch(in, args...)
		}
		return
	}
	g.run = start(g.t, "muster run", g.environment(), append(g.runArgs(), args...)...)
}

// launch starts the agent of one instance, as a resource manager or a person would.
func (g *gang) launch(instance string, args ...string) {
	g.t.Helper()
	in, err := registry.ParseInstance(instance)
	if err != nil {
		g.t.Fatal(err)
	}
	g.agents[instance] = start(g.t, "agent of "+instance, g.environment(), append(g.agentArgs(in), args...)...)
}

func (g *gang) runArgs() []string {
	args := []string{"run", g.dir, "--app-id", g.app, "--work-dir", g.work, "--state-dir", g.state, "--json"}
	if g.place.consul != nil {
		args = append(args, "--registry", g.place.consul.URL(), "--host", "127.0.0.1")
	}
	return args
}

func (g *gang) agentArgs(in registry.Instance) []string {
	return []string{
		"agent", "--app", g.dir, "--app-id", g.app, "--component", in.Component, "--index", fmt.Sprint(in.Index),
		"--registry", g.place.consul.URL(), "--host", "127.0.0.1", "--work-dir", g.work, "--state-dir", g.state,
	}
}

// cast waits for the next process of each instance.
func (g *gang) cast(instances ...string) map[string]*actor {
	g.t.Helper()
	all := map[string]*actor{}
	for _, in := range instances {
		all[in] = g.stage.next(in)
	}
	return all
}

// castOf waits for the first process of each instance in that generation or a later one. In the instance
// scope those who come first may begin in the old one: they cannot know yet that everybody is new.
func (g *gang) castOf(generation int, instances ...string) map[string]*actor {
	g.t.Helper()
	all := g.cast(instances...)
	for in := range all {
		for all[in].generation() < generation {
			all[in] = g.stage.next(in)
		}
	}
	return all
}

// verb runs another verb of muster to its end.
func (g *gang) verb(name string, args ...string) (out string, code int) {
	g.t.Helper()
	p := g.beginVerb(name, args...)
	code = p.wait()
	return p.out(), code
}

// beginVerb starts another verb of muster.
func (g *gang) beginVerb(name string, args ...string) *process {
	g.t.Helper()
	return start(g.t, "muster "+name, g.environment(), append([]string{name, "--state-dir", g.state}, args...)...)
}

// log is the path of one of the files that an instance leaves.
func (g *gang) log(instance, name string) string { return filepath.Join(g.work, "log", instance, name) }

// agentPid is the pid of the agent that holds an instance, from the file that it leaves for its successor.
func (g *gang) agentPid(instance string) int {
	g.t.Helper()
	var file struct{ Pid int }
	g.readJSON(filepath.Join(g.state, "apps", g.app, instance+".json"), &file)
	return file.Pid
}

func (g *gang) readJSON(path string, into any) {
	g.t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		g.t.Fatalf("%s: %v", path, err)
	}
}

// event is a line of events.jsonl.
type event struct {
	At         time.Time
	Instance   string
	Generation int
	Attempt    int
	Event      string
	From, To   string
	Cause      string
}

// events are what an instance's agents went through so far.
func (g *gang) events(instance string) []event {
	g.t.Helper()
	var all []event
	lines := bufio.NewScanner(strings.NewReader(read(g.log(instance, "events.jsonl"))))
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			break // the last line is being written
		}
		all = append(all, e)
	}
	return all
}

// sees waits until an instance has come to a phase, with a cause that holds the words.
func (g *gang) sees(instance, phase, words string) event {
	g.t.Helper()
	var found event
	await(g.t, fmt.Sprintf("%s %s: %s", instance, phase, words), func() bool {
		all := g.events(instance)
		at := slices.IndexFunc(all, func(e event) bool { return e.To == phase && strings.Contains(e.Cause, words) })
		if at >= 0 {
			found = all[at]
		}
		return at >= 0
	})
	return found
}

// agentSays waits until the log of an instance's agents holds the text.
func (g *gang) agentSays(instance, text string) {
	g.t.Helper()
	await(g.t, fmt.Sprintf("%q in agent.log of %s", text, instance), func() bool {
		return strings.Contains(read(g.log(instance, "agent.log")), text)
	})
}

// exitFile is exit.json.
type exitFile struct {
	App, Instance       string
	Attempt, Generation int
	Exit                *struct {
		Code   *int
		Signal int
	}
	Verdict   *registry.Verdict
	AgentCode int `json:"agent_code"`
}

// result is what `muster run --json` prints.
type result struct {
	App, Run, Outcome, Cause string
	Class, First             *string
	Restarts, Generations    int
	Instances                []struct {
		Instance string
		Phase    string
		Restarts int
		Exit     *int
	}
	WorkDir string `json:"work_dir"`
	LogDir  string `json:"log_dir"`
}

// ending is how a gang has ended.
type ending struct {
	run     int // exit code of muster run; of the agents' highest where there is none
	agents  map[string]int
	verdict *registry.Verdict
	result  result // of muster run only
}

// end waits until nothing of the gang runs any more.
func (g *gang) end() ending {
	g.t.Helper()
	e := ending{agents: map[string]int{}}
	if g.run != nil {
		e.run = g.run.wait()
		if err := json.Unmarshal([]byte(g.run.out()), &e.result); err != nil {
			g.t.Fatalf("muster run --json: %v: %q", err, g.run.out())
		}
	}
	for in, p := range g.agents {
		e.agents[in] = p.wait()
	}
	for _, in := range g.def.instances() {
		var x exitFile
		g.readJSON(g.log(in, "exit.json"), &x)
		if code, ok := e.agents[in]; ok && code != x.AgentCode {
			g.t.Errorf("agent of %s exited with %d, exit.json says %d", in, code, x.AgentCode)
		}
		e.agents[in] = x.AgentCode
		if x.Verdict != nil {
			e.verdict = x.Verdict
		}
	}
	return e
}

// succeeds waits for the end and expects success of everybody.
func (g *gang) succeeds() ending {
	g.t.Helper()
	e := g.end()
	if e.verdict == nil || e.verdict.Outcome != registry.Succeeded {
		g.t.Errorf("verdict %+v, want succeeded", e.verdict)
	}
	for in, code := range e.agents {
		if code != 0 {
			g.t.Errorf("agent of %s ended with %d, want 0", in, code)
		}
	}
	if g.run != nil && (e.run != 0 || e.result.Outcome != "succeeded") {
		g.t.Errorf("muster run: %s, exit code %d, want succeeded, 0", e.result.Outcome, e.run)
	}
	return e
}

// fails waits for the end and expects the verdict failed, of that class and first instance, with these
// exit codes of the first's agent and of all others.
func (g *gang) fails(class registry.Class, first string, own, others int) ending {
	g.t.Helper()
	e := g.end()
	v := e.verdict
	if v == nil {
		g.t.Fatalf("no verdict, want failed: %s of %s", class, first)
	}
	if v.Outcome != registry.Failed || v.Class != class || v.First != first {
		g.t.Errorf("verdict %s, class %s, first %s (%s), want failed, %s, %s", v.Outcome, v.Class, v.First, v.Cause, class, first)
	}
	for in, code := range e.agents {
		want := others
		if in == first {
			want = own
		}
		if code != want {
			g.t.Errorf("agent of %s ended with %d, want %d", in, code, want)
		}
	}
	if g.run != nil && e.run != own {
		g.t.Errorf("muster run ended with %d, want that of %s: %d", e.run, first, own)
	}
	return e
}

// interruptedWith waits for the end and expects no verdict and that code of everybody.
func (g *gang) interruptedWith(code int) {
	g.t.Helper()
	e := g.end()
	if e.verdict != nil {
		g.t.Errorf("verdict %+v, want none: the run was interrupted", e.verdict)
	}
	for in, got := range e.agents {
		if got != code {
			g.t.Errorf("agent of %s ended with %d, want %d", in, got, code)
		}
	}
}

// kill sends a signal to a pid.
func kill(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("%s to %d: %v", sig, pid, err)
	}
}

// dump logs what the agents said, for whoever has to find out why a test failed.
func (g *gang) dump() {
	for _, in := range g.def.instances() {
		g.t.Logf("agent.log of %s:\n%s", in, child.Tail(read(g.log(in, "agent.log")), 60))
	}
	if text, err := os.ReadFile(filepath.Join(g.work, "result.json")); err == nil {
		g.t.Logf("result.json:\n%s", bytes.TrimSpace(text))
	}
}
