package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// discovery keeps the instance's services in Consul as its process is: there while it runs, or, where members are written by
// name, from its acknowledgement until it needs the name no more. It decides nothing: what cannot be found runs all the same,
// unless its peers go by the name.
type discovery struct {
	cfg       discoveryConfig
	plan      plan.Plan
	bell      chan struct{}
	announced chan struct{} // closed when the name was registered for the first time
	first     sync.Once
	stop      context.CancelFunc
	work      sync.WaitGroup

	turn   sync.Mutex             // one at a time writes to Consul, and has the fields below
	told   map[string]toldService // by id: what Consul may know of
	reaped bool                   // what predecessors have left is removed
	named  bool                   // acknowledged by name: from now on peers may look for it
	blind  bool                   // the token cannot see the catalog
	zone   string                 // where DNS answers
	over   bool

	known atomic.Pointer[string] // where DNS has it
}

type discoveryConfig struct {
	appID, run, inc, host string
	times                 registry.Times
	client                *consul.Client
	membership            *consul.Seat
	loop                  *machine.Agent
	log                   *slog.Logger
	holds                 func() bool // the registry has confirmed just now that this agent still holds its index
	ports                 func() map[string]int
	warn, mended          func(kind, text string)
}

// toldService is a service and its health as Consul was told last; Name is empty while it is not known whether Consul got it.
type toldService struct {
	consul.Service
	health consul.Health
	at     time.Time
}

// Warnings of discovery.
const (
	warnDiscovery = "discovery" // it is not in Consul
	warnNames     = "names"     // names in Consul are not resolved here
)

// How Consul is told.
const (
	discoverySoon  = 250 * time.Millisecond // before the first look again at a process that does not serve yet, doubled each time
	discoveryAgain = 500 * time.Millisecond // before the next attempt of an acknowledgement that needs the name
	seenPatience   = 3 * time.Second        // for the catalog to have what its Consul agent has been told
	seenPoll       = 20 * time.Millisecond  // before the first look again, doubled each time
	seenSlow       = 320 * time.Millisecond // up to this
	withdrawTime   = 2 * time.Second        // for deregistering at the end; Consul does it itself a minute after the last word
	resolveTime    = 3 * time.Second
)

// Discover begins to register the plan's endpoints, where the registry is Consul.
func (m *Member) Discover(ctx context.Context, p plan.Plan) {
	if p.Discovery == nil {
		return
	}
	c := m.cfg
	d := &discovery{
		cfg: discoveryConfig{
			appID: c.AppID, run: c.Run, inc: c.Inc, host: c.Host.Allocation.Host, times: c.Times, client: c.Client,
			membership: m.Membership(), loop: c.Loop, log: c.Log, holds: m.fence.inContact,
			ports: func() map[string]int { return c.Hooks.Container().Ports },
			warn:  c.Hooks.Warn, mended: c.Hooks.Mended,
		},
		plan: p, bell: make(chan struct{}, 1), announced: make(chan struct{}), told: map[string]toldService{},
	}
	d.known.Store(new(string))
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the staging
	m.mu.Lock()
	m.discovery = d
	m.mu.Unlock()
	d.work.Go(func() { d.run(ctx) })
}

// DNSName is where Consul's DNS has the instance; empty: nowhere, or not now.
func (m *Member) DNSName() string {
	if d := m.services(); d != nil {
		return *d.known.Load()
	}
	return ""
}

// StateChanged has the services follow the machine's new state.
func (m *Member) StateChanged() {
	d := m.services()
	if d == nil {
		return
	}
	select {
	case d.bell <- struct{}{}:
	default: // it rings already
	}
}

// close ends the services: none of this agent's stays, if Consul can be told.
func (d *discovery) close() {
	d.stop()
	d.work.Wait()
	d.turn.Lock()
	d.over = true
	d.turn.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTime) // the agent's own context may have ended by now
	defer cancel()
	if err := d.tell(ctx); err != nil {
		d.cfg.log.Warn("services not deregistered: Consul does it itself in a while", "err", err)
	}
}

// life is how long Consul takes a service for alive after the last word; beat how often there is one.
func (d *discovery) life() time.Duration { return 2 * d.cfg.times.TTL }
func (d *discovery) beat() time.Duration { return d.cfg.times.TTL / 2 }

func (d *discovery) byName() bool { return d.plan.Discovery.Address != "" }

func (d *discovery) run(ctx context.Context) {
	if !d.isConsul(ctx) {
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { d.resolve(ctx) })
	timer, next := time.NewTimer(0), discoverySoon
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.bell:
			next = discoverySoon
		case <-timer.C:
		}
		err := d.tell(ctx)
		if ctx.Err() != nil {
			return
		}
		d.report(err)
		if d.steady() {
			next = d.beat()
		}
		timer.Reset(next)
		next = min(2*next, d.beat())
	}
}

// steady tells whether nothing is expected to change by itself: no process that runs, or one that serves and listens.
func (d *discovery) steady() bool {
	s := d.cfg.loop.State()
	if s.Phase != machine.Running {
		return true
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	for _, one := range d.told {
		if !one.health.Passing {
			return false
		}
	}
	return s.Up
}

// isConsul waits until the registry has said whether it has services.
func (d *discovery) isConsul(ctx context.Context) bool {
	for {
		domain, err := d.cfg.client.Domain(ctx)
		switch {
		case err == nil:
			d.turn.Lock()
			d.zone = domain
			d.turn.Unlock()
			return true
		case errors.Is(err, consul.ErrNoServices):
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d.beat()):
		}
	}
}

// report warns of what keeps the instance from being found. An unreachable registry is reported elsewhere.
func (d *discovery) report(err error) {
	switch {
	case err == nil:
		d.cfg.mended(warnDiscovery, "in Consul as "+d.plan.Discovery.Service)
	case errors.Is(err, registry.ErrUnreachable):
		d.cfg.log.Debug("services not registered", "err", err)
	default:
		d.cfg.warn(warnDiscovery, "not found in Consul as "+d.plan.Discovery.Service+": "+err.Error())
	}
}

// errNotHeld keeps an agent that may have been replaced from putting its services in its successor's place, and from taking
// the successor's for leftovers: it may get through to Consul before it hears that the index is another's.
var errNotHeld = fmt.Errorf("%w: ownership of the index is unconfirmed", registry.ErrUnreachable)

// tell has Consul know what there is now, and nothing else of this agent's.
func (d *discovery) tell(ctx context.Context) error { return d.bring(ctx, d.cfg.loop.State()) }

func (d *discovery) bring(ctx context.Context, state machine.State) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	want := d.wanted(state)
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(d.told)) {
		if slices.ContainsFunc(want, func(s consul.Service) bool { return s.ID == id }) {
			continue
		}
		if err := d.cfg.client.Deregister(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(d.told, id)
		d.cfg.log.Info("service deregistered", "service", id)
	}
	if !d.over && !d.reaped {
		err := d.reap(ctx)
		d.reaped = err == nil || errors.Is(err, registry.ErrForbidden)
		if err != nil && !errors.Is(err, errNotHeld) && ctx.Err() == nil { // they go by themselves, or the next time
			d.cfg.log.Warn("services of an earlier agent not removed", "err", err)
		}
	}
	for _, s := range want {
		errs = append(errs, d.keep(ctx, s, d.health(state, s.Port)))
	}
	name := ""
	if len(d.told) > 0 {
		name = registry.MemberName(d.cfg.appID, state.Instance, d.zone)
	}
	d.known.Store(&name)
	return errors.Join(errs...)
}

// keep registers a service that has changed, and renews the health of one that has not.
func (d *discovery) keep(ctx context.Context, s consul.Service, h consul.Health) error {
	known := d.told[s.ID]
	if known.Equal(s) {
		if known.health == h && time.Since(known.at) < d.beat()/2 {
			return nil
		}
		err := d.cfg.client.Speak(ctx, s.ID, h)
		if err == nil {
			d.told[s.ID] = toldService{s, h, time.Now()}
			return nil
		}
		if !errors.Is(err, consul.ErrNoCheck) {
			return err
		}
		d.cfg.log.Warn("service unknown to its Consul agent, registering again", "service", s.ID)
	}
	if !d.cfg.holds() {
		return errNotHeld
	}
	d.told[s.ID] = toldService{} // Consul may get it although this agent gets no answer
	if err := d.cfg.client.Register(ctx, s, h, d.life()); err != nil {
		return err
	}
	d.told[s.ID] = toldService{s, h, time.Now()}
	address := net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
	d.cfg.log.Info("service registered", "service", s.Name, "id", s.ID, "address", address, "health", h.Why)
	return nil
}

// reap removes what dead agents of this index have left: those of this run, which had to be gone before the index could be
// claimed, and the one whose record this agent has found. Others may live; so may a successor, if the index is not ours any more.
func (d *discovery) reap(ctx context.Context) error {
	c, who := d.cfg, d.plan.Who
	all, err := c.client.Services(ctx, d.plan.Discovery.Service, indexTag(who.Index))
	if err != nil {
		return err
	}
	was := ""
	if before := c.membership.Previous(); before != nil {
		was = before.Inc
	}
	for _, one := range all {
		m := one.Meta
		of := m["app"] == c.appID && m["component"] == who.Component && m["index"] == strconv.Itoa(who.Index)
		if inc := m["incarnation"]; !of || inc == "" || inc == c.inc || m["run"] != c.membership.Record().Run && inc != was {
			continue
		}
		if !c.holds() {
			return errNotHeld
		}
		if err := c.client.Reap(ctx, one); err != nil {
			return err
		}
		c.log.Info("service of a dead agent removed", "service", one.ID, "node", one.Node)
	}
	return nil
}

// resolve warns the user of a host on which programs will not find their peers, unless they ask Consul themselves. It waits until
// there is a name to be found.
func (d *discovery) resolve(life context.Context) {
	select {
	case <-life.Done():
		return
	case <-d.announced:
	}
	ctx, cancel := context.WithTimeout(life, resolveTime)
	defer cancel()
	name := d.plan.Discovery.Address
	if _, err := net.DefaultResolver.LookupHost(ctx, name+"."); err != nil && life.Err() == nil {
		_, domain, _ := strings.Cut(name, ".service.")
		d.cfg.warn(warnNames, fmt.Sprintf("this host does not resolve %s: a program has to ask Consul itself, "+
			"or the host's resolver has to forward %s to it (%v)", name, domain, err))
	}
}
