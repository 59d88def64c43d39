package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
)

// discovery keeps the instance's services in Consul as its process is: there while it runs, or, where members are written by
// name, from its acknowledgement until it needs the name no more. It decides nothing: what cannot be found runs all the same,
// unless its peers go by the name.
type discovery struct {
	*agent
	plan   plan.Plan
	byName bool
	bell   chan struct{}
	// announced is closed when the name was told for the first time.
	announced chan struct{}
	first     sync.Once
	holds     func() bool // the registry has said just now that this agent still holds its index

	turn   sync.Mutex             // one at a time tells Consul, and has the fields below
	told   map[string]toldService // by id: what Consul may know of
	reaped bool                   // what predecessors have left is taken away
	named  bool                   // acknowledged by name: from now on peers may look for it
	blind  bool                   // the token cannot see the catalog
	zone   string                 // where DNS answers
	over   bool

	known atomic.Pointer[string] // where DNS has it
}

// toldService is a service and its health as Consul was told last; Name is empty while it is not known whether it has heard.
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
	discoveryAgain = 500 * time.Millisecond // before the registry is asked again by who has to wait for it
	seenPatience   = 3 * time.Second        // for the catalog to have what its Consul agent has been told
	seenPoll       = 20 * time.Millisecond  // before the first look again, doubled each time
	seenSlow       = 320 * time.Millisecond // up to this
	withdrawTime   = 2 * time.Second        // for taking back at the end; Consul does it itself a minute after the last word
	resolveTime    = 3 * time.Second
)

// discover begins to tell Consul of the plan's endpoints, where the registry is Consul.
func (r stageRoom) discover(p plan.Plan) {
	if p.Discovery == nil {
		return
	}
	d := &discovery{
		agent: r.agent, plan: p, byName: p.Discovery.Address != "", bell: make(chan struct{}, 1), announced: make(chan struct{}), holds: r.currentFence().heard, told: map[string]toldService{},
	}
	d.known.Store(new(string))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.mu.Lock()
	r.discovery = d
	r.mu.Unlock()
	go func() {
		defer close(done)
		d.run(ctx)
	}()
	r.atEnd(func() {
		cancel()
		<-done
		d.withdraw()
	})
}

func (a *agent) discovering() *discovery {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.discovery
}

// name is where Consul's DNS has the instance; empty: nowhere, or not now.
func (d *discovery) name() string {
	if d == nil {
		return ""
	}
	return *d.known.Load()
}

// ring has a look taken at what has changed.
func (d *discovery) ring() {
	if d == nil {
		return
	}
	select {
	case d.bell <- struct{}{}:
	default: // it rings already
	}
}

// life is how long Consul takes a service for alive after the last word; beat how often there is one.
func (d *discovery) life() time.Duration { return 2 * d.times.TTL }
func (d *discovery) beat() time.Duration { return d.times.TTL / 2 }

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
		d.say(err)
		if d.settled() {
			next = d.beat()
		}
		timer.Reset(next)
		next = min(2*next, d.beat())
	}
}

// settled tells whether nothing is expected to change by itself: no process that runs, or one that serves and listens.
func (d *discovery) settled() bool {
	s := d.loop.State()
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
		domain, err := d.client.Domain(ctx)
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

// say warns of what keeps the instance from being found. That the registry is away is said elsewhere.
func (d *discovery) say(err error) {
	switch {
	case err == nil:
		d.mended(warnDiscovery, "in Consul as "+d.plan.Discovery.Service)
	case errors.Is(err, registry.ErrUnreachable):
		d.log.Debug("tell Consul of the services", "err", err)
	default:
		d.warn(warnDiscovery, "not found in Consul as "+d.plan.Discovery.Service+": "+err.Error())
	}
}

// errNotHeld keeps an agent that may have been replaced from putting its services in its successor's place, and from taking
// that one's for what a dead one has left: it may get through to Consul before it hears that the index is another's.
var errNotHeld = fmt.Errorf("%w: whose the index is was not heard for a while", registry.ErrUnreachable)

// tell has Consul know what there is now, and nothing else of this agent's.
func (d *discovery) tell(ctx context.Context) error { return d.bring(ctx, d.loop.State()) }

func (d *discovery) bring(ctx context.Context, state machine.State) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	want := d.wanted(state)
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(d.told)) {
		if slices.ContainsFunc(want, func(s consul.Service) bool { return s.ID == id }) {
			continue
		}
		if err := d.client.Deregister(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(d.told, id)
		d.log.Info("service is taken back", "service", id)
	}
	if !d.over && !d.reaped {
		err := d.reap(ctx)
		d.reaped = err == nil || errors.Is(err, registry.ErrForbidden)
		if err != nil && !errors.Is(err, errNotHeld) && ctx.Err() == nil { // they go by themselves, or the next time
			d.log.Warn("take away what an earlier agent of this index has left in Consul", "err", err)
		}
	}
	for _, s := range want {
		errs = append(errs, d.keep(ctx, s, d.health(state, s.Port)))
	}
	name := ""
	if len(d.told) > 0 {
		name = registry.MemberName(d.id.appID, state.Instance, d.zone)
	}
	d.known.Store(&name)
	return errors.Join(errs...)
}

// keep registers a service that has changed, and speaks for one that has not.
func (d *discovery) keep(ctx context.Context, s consul.Service, h consul.Health) error {
	known := d.told[s.ID]
	if known.Equal(s) {
		if known.health == h && time.Since(known.at) < d.beat()/2 {
			return nil
		}
		err := d.client.Speak(ctx, s.ID, h)
		if err == nil {
			d.told[s.ID] = toldService{s, h, time.Now()}
			return nil
		}
		if !errors.Is(err, consul.ErrNoCheck) {
			return err
		}
		d.log.Warn("service is unknown to its Consul agent and registered again", "service", s.ID)
	}
	if !d.holds() {
		return errNotHeld
	}
	d.told[s.ID] = toldService{} // it may hear of it without our hearing that it has
	if err := d.client.Register(ctx, s, h, d.life()); err != nil {
		return err
	}
	d.told[s.ID] = toldService{s, h, time.Now()}
	d.log.Info("service is in Consul", "service", s.Name, "id", s.ID, "address", net.JoinHostPort(s.Address, strconv.Itoa(s.Port)), "health", h.Why)
	return nil
}

// wanted are the services that there should be in this state.
func (d *discovery) wanted(s machine.State) []consul.Service {
	if d.over || s.CutOff {
		return nil
	}
	switch s.Phase {
	case machine.Running:
		if !s.Up && !d.named {
			return nil
		}
	case machine.Installed, machine.Waiting, machine.Stopping, machine.Backoff:
		if !d.named { // nobody goes by its name while it does not run
			return nil
		}
	case machine.Starting, machine.Claiming, machine.Standby, machine.Staging, machine.Fenced, machine.Finishing, machine.Leaving, machine.Superseded, machine.Done:
		return nil
	}
	d.mu.Lock()
	numbers := maps.Clone(d.portOf)
	d.mu.Unlock()
	var all []consul.Service
	for i, e := range plan.Endpoints(d.plan, d.alloc.Host, numbers) {
		all = append(all, d.service(i, e, s))
	}
	return all
}

// indexTag is the tag that all services of an index have.
func indexTag(index int) string { return "index-" + strconv.Itoa(index) }

// mostMeta is how long a value of a service's meta may be, in bytes.
const mostMeta = 512

func (d *discovery) service(i int, e plan.Endpoint, s machine.State) consul.Service {
	who := d.plan.Who
	id := fmt.Sprintf("%s-%d-%s", d.plan.Discovery.Service, who.Index, d.inc)
	if i > 0 {
		id += "-" + strconv.Itoa(i)
	}
	// The process's own, and not of the directive that may have it end: nobody waits for a service, which belongs to all.
	generation := s.Gen
	if s.Policy.Service {
		generation = s.Directive.Gen
	}
	tags := []string{indexTag(who.Index), "generation-" + strconv.Itoa(generation)}
	if e.Member {
		tags = append([]string{d.plan.Discovery.Tag}, tags...)
	}
	for _, name := range e.Exports {
		if tag := registry.Label(name[strings.LastIndexByte(name, '.')+1:]); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	meta := map[string]string{
		"external-source": "muster", "app": d.id.appID, "run": cmp.Or(s.Run, d.id.run), "component": who.Component, "index": strconv.Itoa(who.Index),
		"role": who.Role, "rank": strconv.Itoa(who.Rank), "generation": strconv.Itoa(generation), "incarnation": d.inc,
		"export": strings.Join(e.Exports, " "), "value": strings.Join(e.Values, " "),
	}
	for name, value := range meta {
		meta[name] = value[:min(len(value), mostMeta)]
	}
	return consul.Service{ID: id, Name: d.plan.Discovery.Service, Tags: tags, Meta: meta, Address: d.alloc.Host, Port: e.Port}
}

// health looks whether somebody listens at the port, without connecting to it.
func (d *discovery) health(s machine.State, port int) consul.Health {
	if s.Phase != machine.Running {
		return consul.Health{Why: "the process does not run: " + string(s.Phase)}
	}
	listening, err := ports.Listening("/proc", port)
	switch {
	case err != nil:
		return consul.Health{Why: err.Error()}
	case listening:
		return consul.Health{Passing: true, Why: "listens at port " + strconv.Itoa(port)}
	}
	return consul.Health{Why: "nothing listens at port " + strconv.Itoa(port)}
}

// reap takes away what dead agents of this index have left: those of this run, which had to be gone before the index could be
// claimed, and the one whose record this agent has found. Others may live; so may a successor's, if the index is not ours any more.
func (d *discovery) reap(ctx context.Context) error {
	all, err := d.client.Services(ctx, d.plan.Discovery.Service, indexTag(d.plan.Who.Index))
	if err != nil {
		return err
	}
	was := ""
	if before := d.seat.Previous(); before != nil {
		was = before.Inc
	}
	for _, one := range all {
		m := one.Meta
		of := m["app"] == d.id.appID && m["component"] == d.plan.Who.Component && m["index"] == strconv.Itoa(d.plan.Who.Index)
		if inc := m["incarnation"]; !of || inc == "" || inc == d.inc || m["run"] != d.seat.Record().Run && inc != was {
			continue
		}
		if !d.holds() {
			return errNotHeld
		}
		if err := d.client.Reap(ctx, one); err != nil {
			return err
		}
		d.log.Info("service of a dead agent is taken away", "service", one.ID, "node", one.Node)
	}
	return nil
}

// withdraw is the end: nothing of this agent's stays, if Consul can be told.
func (d *discovery) withdraw() {
	d.turn.Lock()
	d.over = true
	d.turn.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTime)
	defer cancel()
	if err := d.tell(ctx); err != nil {
		d.log.Warn("take the services back: Consul does it itself in a while", "err", err)
	}
}

// announce has the name known before anybody is told to use it: the gang is released when all have acknowledged. It waits
// for a registry that is away; the error is registry.ErrForbidden, or ctx's.
func (a *agent) announce(ctx context.Context) error {
	d := a.discovering()
	if d == nil || !d.byName {
		return nil
	}
	d.turn.Lock()
	d.named = true
	d.turn.Unlock()
	for {
		err := d.tell(ctx)
		d.say(err)
		if err == nil {
			break
		}
		if errors.Is(err, registry.ErrForbidden) || errors.Is(err, registry.ErrMalformed) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(discoveryAgain):
		}
	}
	d.awaitCatalog(ctx)
	d.first.Do(func() { close(d.announced) })
	return nil
}

// awaitCatalog waits until Consul's servers have what its agent has been told; a token that cannot see that does not wait.
func (d *discovery) awaitCatalog(ctx context.Context) {
	d.turn.Lock()
	defer d.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	for _, id := range slices.Sorted(maps.Keys(d.told)) {
		for poll := seenPoll; !d.blind && ctx.Err() == nil; poll = min(2*poll, seenSlow) {
			seen, blind, err := d.client.Seen(ctx, d.told[id].Service, indexTag(d.plan.Who.Index))
			if d.blind = blind; seen {
				break
			}
			if err != nil {
				d.log.Debug("look for the service in Consul's catalog", "err", err)
			}
			select {
			case <-ctx.Done():
				d.log.Warn("catalog does not have the service yet", "service", id)
			case <-time.After(poll):
			}
		}
	}
}

// resolve tells people of a host on which programs will not find their peers, unless they ask Consul themselves. It waits until
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
		d.warn(warnNames, fmt.Sprintf("this host does not resolve %s: a program has to ask Consul itself, or the host's resolver has to forward %s to it (%v)", name, domain, err))
	}
}

// naming settles how members are written: by name only where something answers DNS.
func (a *agent) naming(ctx context.Context) error {
	if a.app.Settings.Address != appdef.AddressDNS {
		return nil
	}
	domain, err := a.client.Domain(ctx)
	switch {
	case errors.Is(err, consul.ErrNoServices):
		a.noDNS = true
		a.log.Warn("members are written by their hosts' addresses", "cause", "muster.address=dns: "+err.Error())
		return nil
	case err != nil:
		return exit.With(exit.Registry, err)
	}
	a.domain = domain
	return nil
}
