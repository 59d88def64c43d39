//go:build !race

package explorer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/registry/embedded"
)

// TestTransactions: each transaction that registry/consul sends is one that the explorer knows, and the explorer sends
// no other, but for those that the short life below does not meet.
func TestTransactions(t *testing.T) {
	known := map[string]string{}
	for _, s := range large() {
		s.shapes = known
		for seed := range uint64(8) {
			s.walk(seed, *length)
		}
	}
	sent := realLife(t)
	for _, one := range sent {
		if known[one] == "" {
			t.Errorf("registry/consul sends what the explorer does not know: %s", one)
		}
	}
	rare := []string{"T19", "adopted roster", "release", "begin", "adopt", "rewrite"}
	for one, name := range known {
		variant := func(other string) bool { return known[other] == name }
		if !slices.ContainsFunc(sent, variant) && !slices.Contains(rare, name) {
			t.Errorf("the explorer's %s is nothing that registry/consul sent: %s", name, one)
		}
	}
	t.Logf("%d shapes of registry/consul, %d of the explorer", len(sent), len(known))
}

// recorded is an embedded registry that notes the transactions.
type recorded struct {
	mu     sync.Mutex
	shapes map[string]bool
}

func (r *recorded) note(body []byte) {
	var sent []struct{ KV struct{ Verb, Key string } }
	if json.Unmarshal(body, &sent) != nil {
		return
	}
	var ops []op
	writes := false
	for _, o := range sent {
		_, key, _ := strings.Cut(strings.TrimPrefix(o.KV.Key, "muster/"), "/")
		ops = append(ops, op{Verb: o.KV.Verb, Key: key})
		writes = writes || !strings.HasPrefix(o.KV.Verb, "get") && !strings.HasPrefix(o.KV.Verb, "check")
	}
	if writes {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.shapes[shape(ops)] = true
	}
}

// real is a member of the real gang.
type member struct {
	*consul.Membership
	t      *testing.T
	client *consul.Client
	inc    string

	mu   sync.Mutex
	last registry.Directive
	bell chan struct{}
}

// realGang is a gang on the embedded registry.
type realGang struct {
	t     *testing.T
	kv    http.Handler
	at    registry.Address
	facts conductor.Facts
	count int
}

func (g *realGang) join(index int, run string) *member {
	g.t.Helper()
	g.count++
	in := registry.Instance{Component: "w", Index: index}
	r := &member{t: g.t, bell: make(chan struct{})}
	client, err := consul.Open(consul.Config{Address: g.at, Times: g.facts.Times})
	if err != nil {
		g.t.Fatal(err)
	}
	f := g.facts
	f.Run = run
	me := conductor.Newcomer{
		App: "app", Run: run, NewRun: true, Digest: "d", Instance: &in, Launcher: true, Facts: f, Speaks: registry.Spoken(),
		Record: registry.AppRecord{Run: run, Digest: "d", Created: time.Now()},
		Member: registry.Member{Run: run, Inc: fmt.Sprint("inc-", g.count), Addr: "127.0.0.1", Process: registry.Process{
			Machine: "m", Boot: "b", PidNS: "n", Pid: g.count, Start: 1,
		}},
	}
	hooks := consul.Hooks{Alive: func(registry.Member) (bool, string) { return true, "dead" }}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, errors.New("watchdog"))
	defer cancel()
	if r.Membership, err = client.Join(ctx, me, hooks, r.hear); err != nil {
		g.t.Fatal(err)
	}
	r.client, r.inc = client, me.Member.Inc
	g.t.Cleanup(func() { r.Close(); client.Close() })
	return r
}

func (r *member) hear(e registry.Event) {
	if d, ok := e.(registry.DirectiveSeen); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last = d.Directive
		close(r.bell)
		r.bell = make(chan struct{})
	}
}

// told waits for a directive.
func (r *member) told(gen int, act registry.Act) {
	r.t.Helper()
	watchdog := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		d, bell := r.last, r.bell
		r.mu.Unlock()
		if d.Gen == gen && d.Act == act {
			return
		}
		select {
		case <-bell:
		case <-watchdog:
			r.t.Fatalf("no directive %d %s; the last is %d %s: %s", gen, act, d.Gen, d.Act, d.Why)
		}
	}
}

func (g *realGang) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// run brings all into the run of a generation.
func (g *realGang) run(gen int, all ...*member) {
	g.t.Helper()
	for _, r := range all {
		r.told(gen, registry.ActWait)
		g.must(r.Acknowledge(g.t.Context(), gen, func(m *registry.Member) {
			m.Address = fmt.Sprint("127.0.0.1:", 2000+r.Instance().Index)
		}))
	}
	for _, r := range all {
		r.told(gen, registry.ActRun)
	}
}

// end ends the session of a live key, as its time would.
func (g *realGang) end(index int) {
	g.t.Helper()
	var pairs []struct{ Session string }
	s := realStore{t: g.t, h: g.kv}
	s.send(http.MethodGet, fmt.Sprint("/v1/kv/muster/app/live/w/", index), "", &pairs)
	if len(pairs) != 1 || s.send(http.MethodPut, "/v1/session/destroy/"+pairs[0].Session, "", nil) != http.StatusOK {
		g.t.Fatalf("no session of w-%d", index)
	}
}

// cleaned waits until the conductor has cleaned up after the verdict.
func (g *realGang) cleaned() {
	g.t.Helper()
	s := realStore{t: g.t, h: g.kv}
	for watchdog := time.After(30 * time.Second); ; {
		var names []string
		if s.send(http.MethodGet, "/v1/kv/muster/app/ready/?keys", "", &names) == http.StatusNotFound {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-watchdog:
			g.t.Fatalf("%q stay after the verdict", names)
		}
	}
}

// realLife leads a gang of registry/consul through a life, and returns the shapes of its transactions.
func realLife(t *testing.T) []string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, notes := embedded.New(embedded.Options{}), &recorded{shapes: map[string]bool{}}
	kv := server.Handler()
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/txn" {
			body, _ := io.ReadAll(r.Body)
			notes.note(body)
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		kv.ServeHTTP(w, r)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(l) })
	t.Cleanup(func() { server.Close(); _ = web.Close(); serving.Wait() })
	at, err := registry.ParseAddress("consul://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := setting{Workers: 2, Scope: gang, Budget: 5}
	g := &realGang{t: t, kv: kv, at: at, facts: s.facts("1")}
	g.facts.Times = registry.DefaultTimes()
	g.facts.Times.Renew = 300 * time.Millisecond // nothing waits for the other times
	g.live()
	notes.mu.Lock()
	defer notes.mu.Unlock()
	var all []string
	for one := range notes.shapes {
		all = append(all, one)
	}
	slices.Sort(all)
	return all
}

// live is the life: forming, a failure, more members, a death, an early end of a session, another conductor, a stop,
// and the next run.
func (g *realGang) live() {
	ctx := g.t.Context()
	ask := func(r *member, kind string, args map[string]string) {
		g.t.Helper()
		g.must(r.client.Ask(ctx, "app", registry.Ask{Kind: kind, Args: args}))
	}
	a, b := g.join(0, "1"), g.join(1, "1")
	g.run(1, a, b)
	one := 1
	g.must(b.Report(ctx, registry.Report{
		Phase: registry.PhaseFailed, Attempt: 1, Exit: registry.MemberExit{Gen: 1, Code: &one, Class: registry.ClassApp},
	}))
	g.run(2, a, b)
	ask(a, registry.AskFlex, map[string]string{"w": "3"})
	c := g.join(2, "1")
	g.must(c.Publish(ctx, func(m *registry.Member) { m.Address = "127.0.0.1:2002" }))
	g.run(3, a, b, c)
	c.Close()
	g.end(2)
	ask(a, registry.AskGone, map[string]string{"instance": c.Instance().String(), "inc": c.inc})
	a.told(4, registry.ActWait)
	c = g.join(2, "1")
	g.run(4, a, b, c)
	g.end(1) // it attaches again
	g.must(b.Publish(ctx, func(m *registry.Member) { m.Attempt = 2 }))
	g.must(a.Leave(ctx)) // it conducts: another is elected
	a = g.join(0, "1")
	g.run(5, a, b, c)
	ask(a, registry.AskStop, nil)
	for _, r := range []*member{a, b, c} {
		r.told(5, registry.ActStop)
	}
	g.cleaned() // else the conductor may leave before
	for _, r := range []*member{a, b, c} {
		g.must(r.Leave(ctx))
	}
	g.join(0, "2")
}
