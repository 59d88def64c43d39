package registrytest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// peers are the agents of a gang as they answer each other. Their addresses are their ranks.
type peers struct {
	all    gang
	silent map[int]bool // refuse connections
	forged map[int]bool // give other bytes than the roster's
	asked  []atomic.Int32
	gave   []atomic.Int32
}

func (p *peers) ask(ctx context.Context, peer, token, id string, rank int) (packed []byte, next string, err error) {
	n, err := strconv.Atoi(peer)
	if err != nil {
		return nil, "", err
	}
	p.asked[n].Add(1)
	switch {
	case token != p.all[n].membership.Token():
		return nil, "", errors.New("another token")
	case p.silent[n]:
		return nil, "", errors.New("connection refused")
	}
	packed, next, err = p.all[n].membership.GiveRoster(ctx, id, rank)
	if packed != nil {
		p.gave[n].Add(1)
		if p.forged[n] {
			packed = append([]byte(nil), packed...)
			packed[len(packed)/2] ^= 1
		}
	}
	return packed, next, err
}

// TestFanOut: of a large gang only the seeds read the roster from the registry. A member whose parent does not answer, or
// answers with other bytes, gets it from where the parent would have got it. Everybody gets the same roster.
func TestFanOut(t *testing.T) {
	const n = 320
	s := consulserver.Start(t, consulserver.Options{})
	w := newWire(t, s)
	var fromRegistry atomic.Int32
	w.when(func(r *http.Request, _ string) *encounter {
		if strings.Contains(r.URL.Path, "/roster/") {
			fromRegistry.Add(1)
		}
		return nil
	})
	a := newApp(t, w, component("worker", n, registry.ScopeGang))
	a.facts.Times.TTL = 10 * watchdog // a loaded machine renews late
	p := &peers{
		all: make(gang, n), silent: map[int]bool{16: true}, forged: map[int]bool{17: true},
		asked: make([]atomic.Int32, n), gave: make([]atomic.Int32, n),
	}
	parallel(n, func(i int) {
		g := a.agent(t, fmt.Sprintf("worker-%d", i), func(g *agent) { g.hooks.Roster = p.ask })
		p.all[i] = g
		if err := g.tryJoin(); err != nil {
			t.Error(err)
			return
		}
		g.told(1, registry.ActWait)
		must(t, g.membership.Acknowledge(soon(t), 1, func(m *registry.Member) { m.Peer = strconv.Itoa(i) }))
	})
	if t.Failed() {
		t.FailNow()
	}
	files := make([][]byte, n)
	parallel(n, func(i int) {
		d := p.all[i].told(1, registry.ActRun)
		_, files[i] = p.all[i].roster(d.Roster)
	})
	for i := range files {
		if !bytes.Equal(files[i], files[0]) || len(files[i]) == 0 {
			t.Fatalf("worker-%d has another roster", i)
		}
	}
	// On a busy machine a parent answers too late, and a seed asks again.
	if got, least := int(fromRegistry.Load()), registry.FanOut; got < least || got > 2*least {
		t.Errorf("the roster was read %d times from the registry, want %d and few more", got, least)
	}
	orphans := len(childrenOf(16, n)) + len(childrenOf(17, n))
	if orphans == 0 {
		t.Fatal("the silent member has no children")
	}
	for i := range p.gave {
		if got := int(p.gave[i].Load()); got > registry.FanOut+orphans {
			t.Errorf("worker-%d gave the roster to %d members", i, got)
		}
	}
}

// childrenOf are the ranks that a rank gives the roster to.
func childrenOf(rank, world int) []int {
	var all []int
	for i := range world {
		if parent, ok := registry.Parent(i); ok && parent == rank {
			all = append(all, i)
		}
	}
	return all
}

// slowRoster: renewals pass while a large roster is on its way over a slow link.
func slowRoster(t *testing.T, s server) {
	w := newWire(t, s)
	a := newApp(t, w, component("worker", 1, registry.ScopeGang))
	g := a.agent(t, "worker-0", often).join()
	rows := registry.Roster{Version: 1, Run: "1", Gen: 1}
	for i := range 4000 {
		rows.Rows = append(rows.Rows, registry.Row{Instance: registry.Instance{Component: "worker", Index: i}, Rank: i, Inc: "inc"})
	}
	packed, err := registry.Pack(rows)
	must(t, err)
	for n, chunk := range packed.Chunks {
		rawOf(t, s.URL()).put(fmt.Sprintf("%s/roster/%s/%d", a.facts.App, packed.Ref.ID, n), chunk)
	}
	renewsDuring(t, w, g, "/roster/", func() error {
		_, err := g.membership.Roster(soon(t), packed.Ref)
		return err
	})
}

// slowCheckpoints: renewals pass while the checkpoints of all members are on their way over a slow link.
func slowCheckpoints(t *testing.T, s server) {
	w := newWire(t, s)
	g := newApp(t, w, component("worker", 1, registry.ScopeGang)).agent(t, "worker-0", often).join()
	renewsDuring(t, w, g, "/checkpoint/", func() error {
		_, err := g.membership.Stored(soon(t))
		return err
	})
}

// renewsDuring holds the first request whose path has that part, which read makes, until the agent has renewed.
func renewsDuring(t *testing.T, w *wire, g *agent, part string, read func() error) {
	t.Helper()
	var reads int
	held, arrived := make(chan struct{}), make(chan struct{})
	renewed := make(chan struct{}, 100)
	w.when(func(r *http.Request, _ string) *encounter {
		switch {
		case strings.Contains(r.URL.Path, part):
			if reads++; reads == 1 {
				close(arrived)
				return &encounter{hold: held}
			}
		case strings.HasPrefix(r.URL.Path, "/v1/session/renew/") && reads > 0:
			select {
			case renewed <- struct{}{}:
			default:
			}
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- read() }()
	<-arrived
	ctx := soon(t)
	for range 4 { // one may have been on its way
		select {
		case <-renewed:
		case err := <-done:
			t.Fatalf("the reading ended before the renewals: %v", err)
		case <-ctx.Done():
			t.Fatal("no renewal during the reading")
		}
	}
	close(held)
	must(t, <-done)
	if n := heard(g, func(registry.Unreachable) bool { return true }); n != 0 {
		t.Errorf("out of contact %d times", n)
	}
}

// often has an agent renew often, and give each request its usual time: a loaded machine answers late.
func often(g *agent) { g.me.Facts.Times.Renew = 300 * time.Millisecond }

// parallel does n things, some at a time and begun in order: each has a watchdog of its own, and two processors do not
// do hundreds within it.
func parallel(n int, do func(i int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, 32)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	all.Wait()
}
