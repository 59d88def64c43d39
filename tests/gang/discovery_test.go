package gang

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestDiscovery: exports are services in Consul while their processes run, and gone at every kind of end; members that go by
// name are found by DNS before and after they move.
func TestDiscovery(t *testing.T) {
	at := place{consul: consulserver.Start(t, consulserver.Options{DNS: true})}
	playAll(t, at, []scenario{
		{"service life", serviceLife},
		{"failure", serviceOfFailure},
		{"stopped", serviceOfStopped},
		{"TERM from the launcher", func(t *testing.T, at place) { serviceOfSignalled(t, at, syscall.SIGTERM) }},
		{"INT from the launcher", func(t *testing.T, at place) { serviceOfSignalled(t, at, syscall.SIGINT) }},
		{"flex down", serviceOfFlexed},
		{"agent killed, replaced", serviceOfReplaced},
		{"agent killed, alone", serviceOfKilled},
		{"another run's stays", serviceOfAnotherRun},
		{"forgotten by Consul's agent", serviceForgotten},
		{"names that no label can have", serviceOddName},
		{"by name, moved", movedByName},
		{"by name, other port", otherPortByName},
	})
}

// served is a service instance as Consul's catalog has it.
type served struct {
	ServiceID, ServiceAddress, Node string
	ServicePort                     int
	ServiceTags                     []string
	ServiceMeta                     map[string]string
}

// catalog lists the instances of a component's service.
func (g *gang) catalog(component string) []served {
	g.t.Helper()
	var all []served
	g.ask("/v1/catalog/service/"+registry.ServiceName(g.app, component), &all)
	return all
}

func (g *gang) ask(path string, into any) {
	g.t.Helper()
	answer, err := http.Get("http://" + g.place.consul.HTTPAddr + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		g.t.Fatalf("%s: %s, %v", path, answer.Status, err)
	}
}

// found waits until the component's instances are so many in the catalog.
func (g *gang) found(component string, n int) (all []served) {
	g.t.Helper()
	await(g.t, fmt.Sprintf("%d services of %s", n, component), func() bool {
		all = g.catalog(component)
		return len(all) == n
	})
	return all
}

// orderly is how long an agent's own taking back may need. Consul by itself takes nothing away within a minute.
const orderly = 40 * time.Second

// vanished waits until nothing of the app is in the catalog, sooner than Consul would take it away by itself.
func (g *gang) vanished(components ...string) {
	g.t.Helper()
	for _, c := range components {
		awaitFor(g.t, orderly, "no service of "+c, func() bool { return len(g.catalog(c)) == 0 })
	}
}

// health is what the check of an instance's service says, and how.
func (g *gang) health(component string, index int) (status, output string) {
	g.t.Helper()
	var all []struct {
		Service struct{ Tags []string }
		Checks  []struct{ CheckID, Status, Output string }
	}
	g.ask("/v1/health/service/"+registry.ServiceName(g.app, component), &all)
	for _, one := range all {
		if !slices.Contains(one.Service.Tags, "index-"+strconv.Itoa(index)) {
			continue
		}
		for _, c := range one.Checks {
			if strings.HasPrefix(c.CheckID, "service:") {
				return c.Status, c.Output
			}
		}
	}
	return "", ""
}

// resolved are the addresses behind a name; none where DNS has no such name.
func (g *gang) resolved(name string) []string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	all, err := g.place.consul.Resolver().LookupHost(ctx, name+".")
	if e, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !e.IsNotFound) {
		g.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// ports are those that DNS has behind a name.
func (g *gang) ports(name string) []int {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	_, all, err := g.place.consul.Resolver().LookupSRV(ctx, "", "", name+".")
	if err != nil {
		g.t.Fatal(err)
	}
	var found []int
	for _, one := range all {
		found = append(found, int(one.Port))
	}
	return found
}

func (g *gang) name(component string, index int) string {
	return registry.MemberName(g.app, registry.Instance{Component: component, Index: index}, "")
}

// A service is there when its process runs, says whether anybody listens, goes with the process, comes with the next one, and is
// gone with the run.
func serviceLife(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart.backoff": "5s..5s"}))
	cast := g.begin()
	all := g.found("worker", 2)
	for _, s := range all {
		index := s.ServiceMeta["index"]
		name := "worker-" + index
		want := map[string]string{
			"app": g.app, "component": "worker", "index": index, "run": "1", "generation": "1", "role": "worker", "rank": index,
			"incarnation": g.member(name).Inc, "export": "worker.address", "value": fmt.Sprintf("127.0.0.1:%d", cast[name].port()), "external-source": "muster",
		}
		for k, v := range want {
			if s.ServiceMeta[k] != v {
				t.Errorf("%s: meta %s is %q, want %q", name, k, s.ServiceMeta[k], v)
			}
		}
		if s.ServicePort != cast[name].port() || s.ServiceAddress != "127.0.0.1" {
			t.Errorf("%s: %s port %d", name, s.ServiceAddress, s.ServicePort)
		}
		if tags := []string{name, "index-" + index, "generation-1", "address"}; !slices.Equal(s.ServiceTags, tags) {
			t.Errorf("%s: tags %q, want %q", name, s.ServiceTags, tags)
		}
	}
	if got := g.ports(g.name("worker", 1)); !slices.Equal(got, []int{cast["worker-1"].port()}) {
		t.Errorf("%s: ports %d, want %d", g.name("worker", 1), got, cast["worker-1"].port())
	}
	cast["worker-0"].do(cue{Do: "listen"})
	await(t, "worker-0 passes", func() bool {
		status, output := g.health("worker", 0)
		return status == "passing" && output == fmt.Sprintf("listens at port %d", cast["worker-0"].port())
	})
	if status, _ := g.health("worker", 1); status != "warning" {
		t.Errorf("worker-1, which listens at nothing, is %s", status)
	}
	cast["worker-0"].exit(1)
	g.stage.next("worker-0").exit(1) // the first restart is immediate
	if left := g.found("worker", 1); left[0].ServiceMeta["index"] != "1" {
		t.Errorf("while worker-0 does not run: %+v", left)
	}
	cast["worker-0"] = g.stage.next("worker-0")
	g.found("worker", 2)
	await(t, "their names in the status", func() bool {
		named := 0
		for _, row := range g.view("status").Instances {
			in, err := registry.ParseInstance(row.Instance)
			if err != nil {
				t.Fatal(err)
			}
			if row.DNSName == g.name(in.Component, in.Index) {
				named++
			}
		}
		return named == 2
	})
	cast["worker-0"].exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
	g.vanished("worker")
}

func serviceOfFailure(t *testing.T, at place) {
	g := newGang(t, at, training(1, map[string]string{"muster.restart": "never"}))
	cast := g.begin()
	g.found("worker", 1)
	g.found("ps", 1)
	cast["worker-0"].exit(7)
	g.fails(registry.ClassApp, "worker-0", 7, 93)
	g.vanished("worker", "ps")
}

func serviceOfStopped(t *testing.T, at place) {
	g := newGang(t, at, training(1, nil))
	g.begin()
	g.found("worker", 1)
	g.found("ps", 1)
	if out, code := g.verb("stop", g.app); code != 0 {
		t.Fatalf("stop ended with %d: %s", code, out)
	}
	for name, agent := range g.agents {
		if code := agent.wait(); code != 0 {
			t.Errorf("agent of %s ended with %d", name, code)
		}
	}
	g.vanished("worker", "ps")
}

func serviceOfSignalled(t *testing.T, at place, sig syscall.Signal) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	g.found("worker", 2)
	g.agents["worker-0"].signal(sig)
	g.agents["worker-0"].wait()
	if left := g.found("worker", 1); left[0].ServiceMeta["index"] != "1" {
		t.Errorf("after a signal to worker-0's agent: %+v", left)
	}
	cast["worker-1"].do(cue{Do: "listen"})
	g.agents["worker-1"].signal(sig)
	g.agents["worker-1"].wait()
	g.vanished("worker")
}

func serviceOfFlexed(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	g.begin()
	g.found("worker", 2)
	if out, code := g.verb("flex", g.app, "worker=1"); code != 0 {
		t.Fatalf("flex ended with %d: %s", code, out)
	}
	left := g.stage.next("worker-0")
	if s := g.found("worker", 1); s[0].ServiceMeta["index"] != "0" {
		t.Errorf("after worker-1 was given up: %+v", s)
	}
	await(t, "the new generation in the catalog", func() bool {
		s := g.catalog("worker")
		return len(s) == 1 && s[0].ServiceMeta["generation"] == "2" && slices.Contains(s[0].ServiceTags, "generation-2")
	})
	left.exit(0)
	g.succeeds()
	g.vanished("worker")
}

// A successor takes away what the dead agent has left, at once: the name is its alone.
func serviceOfReplaced(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	before := g.found("worker", 2)
	g.agents["worker-0"].kill()
	cast["worker-0"].gone()
	g.launch("worker-0")
	again := g.stage.next("worker-0")
	var after []served
	awaitFor(t, orderly, "the successor's service alone", func() bool {
		after = g.catalog("worker")
		fresh := 0
		for _, s := range after {
			if !slices.ContainsFunc(before, func(o served) bool { return o.ServiceID == s.ServiceID }) {
				fresh++
			}
		}
		return len(after) == 2 && fresh == 1
	})
	again.exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
	g.vanished("worker")
}

// Nobody follows: Consul gives the name out no more when nobody has spoken for it for as long as a session lives at most.
func serviceOfKilled(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	g.begin()
	g.found("worker", 1)
	if got := g.resolved(g.name("worker", 0)); !slices.Equal(got, []string{"127.0.0.1"}) {
		t.Errorf("before: got %q", got)
	}
	g.agents["worker-0"].kill()
	await(t, "the name is not given out", func() bool { return len(g.resolved(g.name("worker", 0))) == 0 })
	if status, _ := g.health("worker", 0); status != "critical" {
		t.Errorf("its check is %s", status)
	}
}

// What an agent of another run has in Consul is not ours to take away, nor what another index of this run has.
func serviceOfAnotherRun(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	address, err := registry.ParseAddress(at.consul.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := consul.Open(consul.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name := registry.ServiceName(g.app, "worker")
	put := func(inc, run, index string) string {
		s := consul.Service{
			ID: name + "-" + index + "-" + inc, Name: name, Tags: []string{"index-" + index}, Address: "127.0.0.1", Port: 1,
			Meta: map[string]string{"app": g.app, "run": run, "component": "worker", "index": index, "incarnation": inc},
		}
		if err := c.Register(t.Context(), s, consul.Health{Passing: true}, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	lives, neighbour, dead := put("lives", "0", "0"), put("neighbour", "1", "7"), put("dead", "1", "0")
	worker := g.begin()["worker-0"]
	ids := func() (all []string) {
		for _, s := range g.catalog("worker") {
			all = append(all, s.ServiceID)
		}
		return all
	}
	await(t, "what the dead have left is gone", func() bool { all := ids(); return len(all) == 3 && !slices.Contains(all, dead) })
	worker.exit(0)
	g.succeeds()
	awaitFor(t, orderly, "its own service is gone", func() bool { return len(ids()) == 2 })
	if all := ids(); !slices.Contains(all, lives) || !slices.Contains(all, neighbour) {
		t.Errorf("left: %q, want those of the other run and of the other index", all)
	}
	for _, id := range []string{lives, neighbour} {
		if err := c.Deregister(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

// A service that somebody has taken away comes again.
func serviceForgotten(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	worker := g.begin()["worker-0"]
	id := g.found("worker", 1)[0].ServiceID
	g.agentSays("worker-0", "service registered") // with all that it says of it
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+at.consul.HTTPAddr+"/v1/agent/service/deregister/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	g.agentSays("worker-0", "service unknown to its Consul agent, registering again")
	g.found("worker", 1)
	worker.exit(0)
	g.succeeds()
}

// An app may have a name that is no label of DNS: Slider's and YARN's have underscores.
func serviceOddName(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	g.app = "Odd_" + g.app
	worker := g.begin()["worker-0"]
	s := g.found("worker", 1)[0]
	if s.ServiceMeta["app"] != g.app || !strings.HasPrefix(s.ServiceID, "odd-") {
		t.Errorf("%+v", s)
	}
	if got := g.resolved(g.name("worker", 0)); !slices.Equal(got, []string{"127.0.0.1"}) {
		t.Errorf("%s: got %q", g.name("worker", 0), got)
	}
	worker.exit(0)
	g.succeeds()
	g.vanished("worker")
}

// byName is a server and two workers that are written by their names.
func byName() definition { return training(2, map[string]string{"muster.address": "dns"}) }

// told is what the process has been told of another member: an address that is resolved where it is used.
func (a *actor) told(name string) string {
	a.t.Helper()
	text, err := os.ReadFile(a.env("MUSTER_ROSTER_FILE"))
	if err != nil {
		a.t.Fatal(err)
	}
	var roster registry.Roster
	if err := json.Unmarshal(text, &roster); err != nil {
		a.t.Fatal(err)
	}
	for _, row := range roster.Rows {
		if row.Instance.String() == name {
			return row.Addr
		}
	}
	a.t.Fatalf("%s is told nothing of %s", a.Name, name)
	return ""
}

// calls has the process resolve what it was told of another one by Consul's DNS, connect, and be answered by whom it expects.
func (a *actor) calls(g *gang, address, answer string) {
	a.t.Helper()
	text, err := json.Marshal(call{g.place.consul.DNSAddr, address, answer})
	if err != nil {
		a.t.Fatal(err)
	}
	a.do(cue{Do: "call", Text: string(text)})
}

// A member that comes up on another host at its old port keeps its name and its row: nobody else stops, and who resolves the
// name again finds it.
func movedByName(t *testing.T, at place) {
	g := newGang(t, at, byName())
	for _, in := range g.def.instances() {
		g.launch(in, "--host", map[string]string{"ps-0": "127.0.0.2", "worker-0": "127.0.0.3", "worker-1": "127.0.0.4"}[in])
	}
	cast := g.cast(g.def.instances()...)
	want := fmt.Sprintf("%s:%d", g.name("ps", 0), cast["ps-0"].port())
	for _, name := range []string{"worker-0", "worker-1"} {
		if got := cast[name].told("ps-0"); got != want {
			t.Errorf("%s is told %q of its server, want %q", name, got, want)
		}
		// Everybody's name was known before anybody was released: nobody waits here.
		if got := g.resolved(g.name("ps", 0)); !slices.Equal(got, []string{"127.0.0.2"}) {
			t.Errorf("%s resolves to %q", g.name("ps", 0), got)
		}
	}
	cast["ps-0"].do(cue{Do: "serve"})
	cast["worker-0"].calls(g, want, "ps-0 1 127.0.0.2")
	if got := cast["ps-0"].env("MUSTER_HOST"); got != "127.0.0.2" {
		t.Errorf("MUSTER_HOST is %q, which a process listens at", got)
	}

	g.agents["ps-0"].kill()
	cast["ps-0"].gone()
	g.launch("ps-0", "--host", "127.0.0.9")
	moved := g.stage.next("ps-0")
	if moved.generation() != 1 || moved.port() != cast["ps-0"].port() {
		t.Fatalf("moved: generation %d, port %d, want 1 and %d", moved.generation(), moved.port(), cast["ps-0"].port())
	}
	moved.do(cue{Do: "serve"})
	for _, name := range []string{"worker-0", "worker-1"} {
		cast[name].calls(g, want, "ps-0 2 127.0.0.9")
	}
	cast["ps-0"] = moved
	g.unmoved(cast, "ps-0")
	cast["worker-0"].exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
	g.vanished("worker", "ps")
}

// Its port is taken when it comes again, and a setting of the workers names it: a new generation forms, with the same
// names and the new port, which SRV has too.
func otherPortByName(t *testing.T, at place) {
	d := byName()
	d.settings["site.global.servers"] = "${ps_HOST}"
	g := newGang(t, at, d)
	cast := g.begin()
	guard, old := g.guardPid("ps-0"), cast["ps-0"].port()
	g.agents["ps-0"].kill()
	cast["ps-0"].gone()
	await(t, "the guard without a trace", func() bool { return !lives(guard) })
	stranger, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(old)))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	g.launch("ps-0")
	again := g.castOf(2, g.def.instances()...)
	port := again["ps-0"].port()
	if port == old {
		t.Fatalf("port %d again, which a stranger has", port)
	}
	want := fmt.Sprintf("%s:%d", g.name("ps", 0), port)
	if got := again["worker-0"].told("ps-0"); got != want {
		t.Errorf("worker-0 is told %q of its server, want %q", got, want)
	}
	if got := g.ports(g.name("ps", 0)); !slices.Equal(got, []int{port}) {
		t.Errorf("%s has ports %d, want %d", g.name("ps", 0), got, port)
	}
	again["ps-0"].do(cue{Do: "serve"})
	again["worker-0"].calls(g, want, fmt.Sprintf("ps-0 %d 127.0.0.1", again["ps-0"].attempt()))
	again["worker-0"].exit(0)
	again["worker-1"].exit(0)
	g.succeeds()
	g.vanished("worker", "ps")
}

// TestNamesWithoutConsul: the registry of one machine has no DNS, so members are written by address, and it is said.
func TestNamesWithoutConsul(t *testing.T) {
	g := newGang(t, place{run: true}, byName())
	cast := g.begin()
	want := fmt.Sprintf("127.0.0.1:%d", cast["ps-0"].port())
	if got := cast["worker-0"].told("ps-0"); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	g.agentSays("worker-0", "muster.address=dns: the registry has no services")
	cast["worker-0"].exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
}

// call is what a puppet is told to do with an address of a peer.
type call struct {
	DNS, Address, Answer string
}

// serve answers whoever connects with who this is.
func serve() error {
	l, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("MUSTER_HOST"), os.Getenv("MUSTER_PORT")))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "%s %s %s\n", os.Getenv("MUSTER_INSTANCE"), os.Getenv("MUSTER_ATTEMPT"), os.Getenv("MUSTER_HOST"))
			c.Close()
		}
	}()
	return nil
}

// callPeer resolves the name by one DNS server, connects, and compares who answers.
func callPeer(text string) error {
	var c call
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, c.DNS)
	}}
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	all, err := resolver.LookupHost(ctx, host+".")
	if err != nil || len(all) != 1 {
		return fmt.Errorf("%s: %q, %w", host, all, err)
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(all[0], port), watchdog)
	if err != nil {
		return err
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if got := strings.TrimSpace(line); got != c.Answer {
		return fmt.Errorf("%s answered %q (%w), want %q", c.Address, got, err, c.Answer)
	}
	return nil
}
