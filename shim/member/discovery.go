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

// discovery keeps the instance's services in Consul as its process is: there while it runs, or, where members are
// written by name, from its acknowledgement until it needs the name no more. It decides nothing: what cannot be found
// runs all the same, unless its peers go by the name.
type discovery struct {
	cfg       discoveryConfig
	plan      plan.Plan
	wake      chan struct{}
	announced chan struct{} // closed when the name was registered for the first time
	first     sync.Once
	close     func() // deregisters the services, if Consul answers
	work      sync.WaitGroup

	turn     sync.Mutex            // one at a time writes to Consul, and has the fields below
	services map[string]registered // by id: what Consul may know of
	reaped   bool                  // what predecessors have left is removed
	named    bool                  // acknowledged by name: from now on peers may look for it
	blind    bool                  // the token cannot see the catalog
	zone     string                // where DNS answers
	over     bool

	dnsName atomic.Pointer[string] // where DNS has it
}

type discoveryConfig struct {
	appID, run, inc, host string
	times                 registry.Times
	client                *consul.Client
	membership            *consul.Membership
	loop                  *machine.Agent
	log                   *slog.Logger
	holds                 func() bool // the registry has confirmed just now that this agent still holds its index
	ports                 func() map[string]int
	warn, mended          func(kind, text string)
}

// registered is a service and its health as last written to Consul; Name is empty while it is unknown whether Consul
// got it.
type registered struct {
	consul.Service
	health consul.Health
	at     time.Time
}

// Warnings of discovery.
const (
	warnDiscovery = "discovery" // it is not in Consul
	warnNames     = "names"     // names in Consul are not resolved here
)

// How services are written.
const (
	discoverySoon  = 250 * time.Millisecond // before the next look at a process that does not serve yet, doubled
	discoveryAgain = 500 * time.Millisecond // before the next attempt of an acknowledgement that needs the name
	seenPatience   = 3 * time.Second        // for the catalog to have what its Consul agent has
	seenPoll       = 20 * time.Millisecond  // before the next look, doubled each time
	seenSlow       = 320 * time.Millisecond // up to this
	withdrawTime   = 2 * time.Second        // for deregistering at the end; Consul does it itself after a minute
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
		plan: p, wake: make(chan struct{}, 1), announced: make(chan struct{}), services: map[string]registered{},
	}
	d.dnsName.Store(new(string))
	life := context.WithoutCancel(ctx) // it outlives the staging
	ctx, cancel := context.WithCancel(life)
	d.close = func() {
		cancel()
		d.work.Wait()
		d.withdraw(life)
	}
	m.mu.Lock()
	m.discovery = d
	m.mu.Unlock()
	d.work.Go(func() { d.run(ctx) })
}

// DNSName is where Consul's DNS has the instance; empty: nowhere, or not now.
func (m *Member) DNSName() string {
	if d := m.services(); d != nil {
		return *d.dnsName.Load()
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
	case d.wake <- struct{}{}:
	default: // run is awake
	}
}

// withdraw deregisters the services for good.
func (d *discovery) withdraw(ctx context.Context) {
	d.turn.Lock()
	d.over = true
	d.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, withdrawTime)
	defer cancel()
	if err := d.reconcileNow(ctx); err != nil {
		d.cfg.log.Warn("services not deregistered: Consul does it itself in a while", "err", err)
	}
}

// life is for how long Consul takes a service for alive after its health was written; beat is how often it is written.
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
		case <-d.wake:
			next = discoverySoon
		case <-timer.C:
		}
		err := d.reconcileNow(ctx)
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
	for _, one := range d.services {
		if !one.health.Passing {
			return false
		}
	}
	return s.Up
}

// isConsul waits until the registry has answered whether it has services.
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
		remedy := ""
		if errors.Is(err, registry.ErrForbidden) {
			remedy = "; " + consul.TokenRemedy(d.cfg.appID)
		}
		d.cfg.warn(warnDiscovery, "not found in Consul as "+d.plan.Discovery.Service+": "+err.Error()+remedy)
	}
}

// errNotHeld keeps an agent that may have been replaced from putting its services in its successor's place, and from
// taking the successor's for leftovers: it may reach Consul before it learns that another agent holds the index.
var errNotHeld = fmt.Errorf("%w: ownership of the index is unconfirmed", registry.ErrUnreachable)

// reconcileNow has Consul know what there is now, and nothing else of this agent's.
func (d *discovery) reconcileNow(ctx context.Context) error {
	return d.reconcile(ctx, d.cfg.loop.State())
}

func (d *discovery) reconcile(ctx context.Context, state machine.State) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	want := d.wanted(state)
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(d.services)) {
		if slices.ContainsFunc(want, func(s consul.Service) bool { return s.ID == id }) {
			continue
		}
		if err := d.cfg.client.Deregister(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(d.services, id)
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
	if len(d.services) > 0 {
		name = registry.MemberName(d.cfg.appID, state.Instance, d.zone)
	}
	d.dnsName.Store(&name)
	return errors.Join(errs...)
}

// keep registers a service that has changed, and renews the health of one that has not.
func (d *discovery) keep(ctx context.Context, s consul.Service, h consul.Health) error {
	known := d.services[s.ID]
	if known.Equal(s) {
		if known.health == h && time.Since(known.at) < d.beat()/2 {
			return nil
		}
		err := d.cfg.client.Speak(ctx, s.ID, h)
		if err == nil {
			d.services[s.ID] = registered{s, h, time.Now()}
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
	d.services[s.ID] = registered{} // Consul may get it although this agent gets no answer
	if err := d.cfg.client.Register(ctx, s, h, d.life()); err != nil {
		return err
	}
	d.services[s.ID] = registered{s, h, time.Now()}
	address := net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
	d.cfg.log.Info("service registered", "service", s.Name, "id", s.ID, "address", address, "health", h.Why)
	return nil
}

// reap removes what dead agents of this index have left: those of this run, which had to be gone before the index could
// be claimed, and the one whose record this agent has found. Others may live; so may a successor, if the index is not
// ours any more.
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
		inc, sameRun := m["incarnation"], m["run"] == c.membership.Record().Run
		if !of || inc == "" || inc == c.inc || !sameRun && inc != was {
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

// resolve warns the user of a host on which programs will not find their peers, unless they ask Consul themselves. It
// waits until there is a name to be found.
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
