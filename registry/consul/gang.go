package consul

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// gang is one agent's part in one app, with or without an index: it watches the directive, and conducts
// when nobody else does.
type gang struct {
	*Client
	keys keys
	me   conductor.Newcomer
	mail *mailbox
	seen *seen
	link *contact

	ctx    context.Context // ends with the part
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	started  bool
	came     time.Time          // when the directive was first seen
	instance *registry.Instance // of the seat, nil without
	out      bool               // superseded or leaving: conduct no more
	baton    *baton             // held from the start
	stepDown chan struct{}      // closed when out

	conducted chan struct{} // closed when this part will conduct no more
}

func newGang(c *Client, me conductor.Newcomer, notify func(registry.Event)) *gang {
	ctx, cancel := context.WithCancel(context.Background())
	g := &gang{
		Client: c, keys: keysOf(me.App), me: me, seen: newSeen(), mail: newMailbox(notify),
		ctx: ctx, cancel: cancel, stepDown: make(chan struct{}), conducted: make(chan struct{}),
	}
	g.link = newContact(func(e registry.Event) {
		if _, back := e.(registry.Reachable); back {
			if _, lost, _ := g.seen.now(); lost {
				return // it answers, but knows nothing: that is what was said last
			}
		}
		g.mail.send(e)
	})
	return g
}

// start begins to watch from what was read, once.
func (g *gang) start(pair *api.KVPair) {
	g.take(pair, unsure)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		return
	}
	g.started, g.came = true, time.Now()
	g.work.Go(func() { g.watchDirective(pair.ModifyIndex) })
	g.work.Go(g.conduct)
}

// end stops everything. A session that is left behind ends by itself.
func (g *gang) end() {
	g.mail.close()
	g.cancel()
	g.work.Wait()
}

// resign makes this part stop conducting for good and waits until it has.
func (g *gang) resign() {
	g.mu.Lock()
	if !g.out {
		g.out = true
		close(g.stepDown)
	}
	g.mu.Unlock()
}

// take tells everybody what a reading of the directive says. doubt: it goes back, and was not sure.
func (g *gang) take(pair *api.KVPair, mark int) (doubt bool) {
	n, err := g.seen.observe(g.keys.directive(), pair, mark)
	if err != nil {
		g.log.Warn("directive is unreadable", "err", err)
		return false
	}
	g.tell(n)
	return n.doubt
}

func (g *gang) tell(n news) {
	if n.lost != "" {
		g.log.Warn("registry lost its data", "why", n.lost)
		g.mail.send(registry.DataLost{Why: n.lost})
	}
	if n.found {
		g.mail.send(registry.Reachable{})
	}
	if n.directive {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.instance != nil { // a newcomer has no use for it yet
			g.mail.send(registry.DirectiveSeen{Directive: g.seen.directive()})
		}
	}
}

// seated begins the events of a member with the directive.
func (g *gang) seated(in registry.Instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.instance = &in
	g.mail.send(registry.DirectiveSeen{Directive: g.seen.directive()})
}

// watchDirective blocks on the one key that everybody waits for.
func (g *gang) watchDirective(index uint64) {
	key := g.keys.directive()
	var b backoff
	failed := 0
	for g.ctx.Err() == nil {
		from := index
		if failed > 0 {
			from = 0 // an answer at once: contact is known to be back before something changes
		}
		pair, next, err := g.watch.blockKey(g.ctx, key, from, g.times.Wait, byDefault)
		if err != nil {
			if failed++; failed > 1 { // a single reset is nothing: the next try follows at once
				g.link.failed(watching, err)
			}
			_ = pause(g.ctx, b.next())
			continue
		}
		b.reset()
		failed = 0
		g.link.answered(watching, time.Now())
		if next != index || pair == nil {
			g.see(pair)
		}
		index = next
		if pair == nil { // a missing key wakes its watchers at every write nearby
			_ = pause(g.ctx, jitter(time.Second, 2*time.Second))
		}
	}
}

// see takes in a reading of the watch. One that says the data is gone is asked for again with
// consistency: a server that lags must not be taken for one that forgot.
func (g *gang) see(pair *api.KVPair) {
	if g.take(pair, unsure) {
		_ = g.refresh(g.ctx) // the watch comes back
	}
}

// refresh reads the directive with consistency.
func (g *gang) refresh(ctx context.Context) error {
	mark := g.seen.mark()
	pair, err := g.calls.get(ctx, g.keys.directive(), consistent)
	if err != nil {
		return err
	}
	g.take(pair, mark)
	return nil
}

// errDataLost: the registry answers, but what this agent knows is not there.
var errDataLost = errors.New("registry lost its data")
