package registrytest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
)

// app is one app under test, with the registry that its agents use.
type app struct {
	t     testing.TB
	url   string
	facts conductor.Facts
}

// newApp is an app of one ps and two workers in the gang scope, unless components are given.
func newApp(t testing.TB, s server, components ...conductor.ComponentFacts) *app {
	t.Helper()
	if len(components) == 0 {
		components = []conductor.ComponentFacts{
			component("worker", 2, registry.ScopeGang),
			component("ps", 1, registry.ScopeGang),
		}
	}
	return &app{t: t, url: s.URL(), facts: conductor.Facts{
		App: "app-" + strings.ToLower(rand.Text()[:10]), Run: "1", Digest: "digest-1", Components: components,
		Times: registry.DefaultTimes(), GangBudget: conductor.BudgetRule{Max: 5}, StopGrace: time.Second,
	}}
}

// through is the same app, whose agents reach the registry another way.
func (a *app) through(s server) *app {
	b := *a
	b.url = s.URL()
	return &b
}

func component(role string, n int, scope string) conductor.ComponentFacts {
	return conductor.ComponentFacts{
		Name: role, Role: role, Count: n, Scope: scope, Waited: true, Ends: role == "worker", Fails: true,
		MinFailed: new(1), Budget: conductor.BudgetRule{Max: 5},
	}
}

// soon is a context that a test's watchdog ends.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), watchdog, errors.New("the test's watchdog"))
	t.Cleanup(cancel)
	return ctx
}

// agent is one client in the gang, moved by its test.
type agent struct {
	t          testing.TB
	app        *app
	me         conductor.Newcomer
	hooks      consul.Hooks
	client     *consul.Client
	membership *consul.Membership

	mu    sync.Mutex
	inbox []registry.Event
	bell  chan struct{} // closed and replaced at each event
	read  map[reflect.Type]int
}

type option func(*agent)

// agent makes an agent for worker-1 and the like; an empty name has no index.
func (a *app) agent(t testing.TB, name string, options ...option) *agent {
	t.Helper()
	g := &agent{t: t, app: a, bell: make(chan struct{}), read: map[reflect.Type]int{}}
	g.me = conductor.Newcomer{
		App: a.facts.App, Run: a.facts.Run, Digest: a.facts.Digest, Facts: a.facts,
		Member: registry.Member{
			Inc: strings.ToLower(rand.Text()), Addr: "127.0.0.1", Host: "here",
			Process: registry.Process{Machine: "machine-" + name, Boot: "boot", PidNS: "pidns", Pid: 4711, Start: 1},
		},
	}
	if name == "" {
		for _, c := range a.facts.Components {
			for i := range c.Count {
				g.me.Claimable = append(g.me.Claimable, registry.Instance{Component: c.Name, Index: i})
			}
		}
	} else {
		in, err := registry.ParseInstance(name)
		if err != nil {
			t.Fatal(err)
		}
		g.me.Instance = &in
	}
	for _, o := range options {
		o(g)
	}
	log := slog.New(slog.DiscardHandler)
	if _, bench := t.(*testing.B); !bench {
		log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("agent", name, "inc", g.me.Member.Inc)
	}
	client, err := consul.Open(consul.Config{Address: addressOf(a.t, a.url), Times: g.me.Facts.Times, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	g.client = client
	t.Cleanup(func() {
		if g.membership != nil {
			g.membership.Close()
		}
		client.Close()
	})
	return g
}

func launched(g *agent) { g.me.Launcher = true }
func holderGone(g *agent) {
	g.hooks.Alive = func(registry.Member) (bool, string) { return true, "not in /proc" }
}

func answering(g *agent) {
	g.hooks.Answers = func(context.Context, registry.Instance, registry.Member, string) bool { return true }
}

func quickly(g *agent) { // renews often, to see soon that its session has ended
	g.me.Facts.Times.Renew, g.me.Facts.Times.Request = 300*time.Millisecond, 250*time.Millisecond
}

// join joins, and fails the test if that is refused.
func (g *agent) join() *agent {
	g.t.Helper()
	if err := g.tryJoin(); err != nil {
		g.t.Fatalf("join: %v", err)
	}
	return g
}

func (g *agent) tryJoin() error {
	membership, err := g.client.Join(soon(g.t), g.me, g.hooks, g.hear)
	g.membership = membership
	return err
}

func (g *agent) hear(e registry.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inbox = append(g.inbox, e)
	close(g.bell)
	g.bell = make(chan struct{})
}

// await waits for the next event of its type that is wanted; those before it are skipped.
func await[E registry.Event](g *agent, want func(E) bool) E {
	g.t.Helper()
	ctx := soon(g.t)
	for {
		e, ok, bell := next(g, want)
		if ok {
			return e
		}
		select {
		case <-bell:
		case <-ctx.Done():
			g.t.Fatalf("%s: no such %T; got %s", g.name(), e, g.story())
		}
	}
}

func next[E registry.Event](g *agent, want func(E) bool) (found E, ok bool, bell <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kind := reflect.TypeFor[E]()
	for g.read[kind] < len(g.inbox) {
		e, is := g.inbox[g.read[kind]].(E)
		g.read[kind]++
		if is && want(e) {
			return e, true, nil
		}
	}
	return found, false, g.bell
}

func (g *agent) name() string {
	if g.membership != nil {
		return g.membership.Instance().String()
	}
	return g.me.Member.Inc
}

func (g *agent) story() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, e := range g.inbox {
		fmt.Fprintf(&b, "\n  %T %+v", e, e)
	}
	return b.String()
}

// heard counts the events of a type that are like that.
func heard[E registry.Event](g *agent, like func(E) bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, e := range g.inbox {
		if e, is := e.(E); is && like(e) {
			n++
		}
	}
	return n
}

// told waits for the directive of that generation and act, unless it was seen already.
func (g *agent) told(gen int, act registry.Act) registry.Directive {
	g.t.Helper()
	g.mu.Lock()
	delete(g.read, reflect.TypeFor[registry.DirectiveSeen]())
	g.mu.Unlock()
	return await(g, func(e registry.DirectiveSeen) bool {
		return e.Directive.Gen == gen && e.Directive.Act == act
	}).Directive
}

// ready acknowledges a generation with an address of its own.
func (g *agent) ready(gen int) {
	g.t.Helper()
	must(g.t, g.membership.Acknowledge(soon(g.t), gen, func(m *registry.Member) {
		m.Address = fmt.Sprintf("127.0.0.1:2%04d", 100*len(g.membership.Instance().Component)+g.membership.Instance().Index)
		m.Exports = map[string]string{"exports.address": m.Address}
	}))
}

// fail reports that the process has failed, and not for good.
func (g *agent) fail(gen int, class registry.Class) {
	g.t.Helper()
	must(g.t, g.membership.Report(soon(g.t), registry.Report{
		Phase: registry.PhaseFailed, Attempt: 1,
		Exit: registry.MemberExit{Gen: gen, Code: new(3), Class: class, Why: "exit code 3"},
	}))
}

// finish reports that the process has ended with 0.
func (g *agent) finish(gen int) {
	g.t.Helper()
	must(g.t, g.membership.Report(soon(g.t), registry.Report{
		Phase: registry.PhaseEnded, Attempt: 1, Exit: registry.MemberExit{Gen: gen, Code: new(0)},
	}))
}

func (g *agent) leave() {
	g.t.Helper()
	must(g.t, g.membership.Leave(soon(g.t)))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// roster reads and decodes a sealed roster.
func (g *agent) roster(ref registry.RosterRef) (registry.Roster, []byte) {
	g.t.Helper()
	packed, err := g.membership.Roster(soon(g.t), ref)
	must(g.t, err)
	r, file, err := registry.Unpack(ref, packed)
	must(g.t, err)
	return r, file
}

// gang is what most tests begin with: all have joined and run generation 1.
type gang []*agent

// assemble brings all instances into the run of a generation.
func (a *app) assemble(t testing.TB, gen int, options ...option) gang {
	t.Helper()
	var all gang
	for _, c := range a.facts.Components {
		for i := range c.Count {
			all = append(all, a.agent(t, fmt.Sprintf("%s-%d", c.Name, i), options...).join())
		}
	}
	all.release(gen)
	return all
}

// release acknowledges the generation for all and waits until they are told to run.
func (all gang) release(gen int) {
	all.each(func(g *agent) {
		g.told(gen, registry.ActWait)
		g.ready(gen)
	})
	all.each(func(g *agent) { g.told(gen, registry.ActRun) })
}

func (all gang) each(do func(*agent)) {
	for _, g := range all {
		g.t.Helper()
		do(g)
	}
}

// conductor is the one of the gang that conducts.
func (all gang) conductor(t testing.TB) *agent {
	t.Helper()
	by := all[0].status().Conductor
	for _, g := range all {
		if g.membership.Instance().String() == by {
			return g
		}
	}
	t.Fatalf("conductor is %q, none of ours", by)
	return nil
}

func (all gang) without(g *agent) gang {
	var rest gang
	for _, o := range all {
		if o != g {
			rest = append(rest, o)
		}
	}
	return rest
}

func (g *agent) status() consul.Status {
	g.t.Helper()
	s, err := g.client.Status(soon(g.t), g.me.App)
	must(g.t, err)
	return s
}

// member is an instance's record as it stands in the registry.
func (g *agent) member(name string) consul.MemberStatus {
	g.t.Helper()
	for _, m := range g.status().Members {
		if m.Instance.String() == name {
			return m
		}
	}
	g.t.Fatalf("%s has no record", name)
	return consul.MemberStatus{}
}
