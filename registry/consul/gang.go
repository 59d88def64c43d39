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

// gang is one agent's part in one app, with or without an index: it watches the directive, and conducts when no other
// agent does. end stops its goroutines and waits for them.
type gang struct {
	*Client
	keys      keys
	me        conductor.Newcomer
	mail      *mailbox
	directive *directiveWatch
	link      *contact
	node      ownNode
	turned    chan struct{} // rings when the registry's data is lost, and when it is back

	ctx    context.Context // ends with the part
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	started  bool
	came     time.Time          // when the directive was first seen
	handed   bool               // the last conductor stepped down when this agent was a member already
	instance *registry.Instance // of the membership, nil without
	candidacy
}

// candidacy is a part's readiness to conduct.
type candidacy struct {
	resigned  bool           // superseded or leaving: conduct no more
	inherited *conductorLock // held from the start
	stepDown  chan struct{}  // closed by resign
	conducted chan struct{}  // closed when this part will conduct no more
}

// makeSession makes a session of this part, on the app's own node if it exists.
func (g *gang) makeSession(ctx context.Context, who, behaviour string) (string, error) {
	node, err := g.node.find(ctx, g.calls, g.me.App)
	if err != nil {
		return "", err
	}
	g.log.Debug("session is made", "of", who, "node", node)
	return g.calls.createSession(ctx, sessionName(g.me.App, who), behaviour, node, g.times.TTL)
}

// newGang begins a part. It outlives ctx, which limits only the joining; end ends it.
func newGang(ctx context.Context, c *Client, me conductor.Newcomer, notify func(registry.Event)) *gang {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &gang{
		Client: c, keys: keysOf(me.App), me: me, directive: newDirectiveWatch(), mail: newMailbox(notify),
		turned: make(chan struct{}, 1),
		ctx:    ctx, cancel: cancel,
		candidacy: candidacy{stepDown: make(chan struct{}), conducted: make(chan struct{})},
	}
	g.link = newContact(func(e registry.Event) {
		if _, back := e.(registry.Reachable); back {
			if _, lost, _ := g.directive.now(); lost {
				return // the registry answers without the data: DataLost was the last event
			}
		}
		g.mail.send(e)
	})
	return g
}

// start starts the watch of the directive from a reading, once.
func (g *gang) start(pair *api.KVPair) {
	g.observe(pair, unsure)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		return
	}
	g.started, g.came = true, time.Now()
	g.work.Go(func() { g.watchDirective(pair.ModifyIndex) })
	g.work.Go(g.conduct)
}

// end stops all goroutines and waits for them. A session that stays behind expires.
func (g *gang) end() {
	g.mail.close()
	g.cancel()
	g.work.Wait()
}

// resign makes this part stop conducting for good; await waits until it has.
func (g *gang) resign() {
	g.mu.Lock()
	if !g.resigned {
		g.resigned = true
		close(g.stepDown)
	}
	g.mu.Unlock()
}

// observe takes in a reading of the directive and reports what it changes. doubt: the reading goes back or ends a
// loss, and was not consistent.
func (g *gang) observe(pair *api.KVPair, mark int) (doubt bool) {
	n, err := g.directive.observe(g.keys.directive(), pair, mark)
	if err != nil {
		g.log.Warn("directive is unreadable", "err", err)
		return false
	}
	g.report(n)
	return n.doubt
}

func (g *gang) report(n news) {
	if n.lost != "" || n.found {
		latest(g.turned, struct{}{})
	}
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
		g.handed = n.handed && g.instance != nil
		if g.instance != nil { // a newcomer does not need the directive yet
			g.mail.send(registry.DirectiveSeen{Directive: g.directive.directive()})
		}
	}
}

// joined sends the directive as the first event of a member.
func (g *gang) joined(in registry.Instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.instance = &in
	g.mail.send(registry.DirectiveSeen{Directive: g.directive.directive()})
}

// watchDirective blocks on the one key that all agents watch.
func (g *gang) watchDirective(index uint64) {
	key := g.keys.directive()
	var b backoff
	failed := 0
	for g.ctx.Err() == nil {
		from := index
		if failed > 0 {
			from = 0 // ask for an answer at once, so that restored contact is known before something changes
		}
		pair, next, err := g.watch.blockKey(g.ctx, key, from, g.times.Wait, byDefault)
		if err != nil {
			if failed++; failed > 1 { // a single reset is no loss of contact: the next try follows at once
				g.link.failed(watching, err)
				_ = pause(g.ctx, b.next())
			}
			continue
		}
		b.reset()
		failed = 0
		g.link.answered(watching, time.Now())
		if next != index || pair == nil {
			g.observeWatch(pair)
		}
		index = next
		if pair == nil { // the watch of a missing key wakes at every write nearby
			_ = pause(g.ctx, jitter(time.Second, 2*time.Second))
		}
	}
}

// observeWatch takes in a reading of the watch. A reading without the data is repeated with consistency: a server that
// lags behind has not lost its data.
func (g *gang) observeWatch(pair *api.KVPair) {
	if g.observe(pair, unsure) {
		_ = g.refresh(g.ctx) // the watch reads again
	}
}

// refresh reads the directive with consistency.
func (g *gang) refresh(ctx context.Context) error {
	mark := g.directive.mark()
	pair, err := g.calls.get(ctx, g.keys.directive(), consistent)
	if err != nil {
		return err
	}
	g.observe(pair, mark)
	return nil
}

// errDataLost: the registry answers, but without what this agent has written.
var errDataLost = errors.New("registry lost its data")
