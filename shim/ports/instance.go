package ports

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
)

// Instance are the ports of one instance: taken while it is staged, handed to its process at each start, held again
// when the process has ended. Its methods may be called from any goroutine.
type Instance struct {
	app   string // id of the app, which agrees on shared ports
	asked Ranges
	log   *slog.Logger

	mu      sync.Mutex
	held    *Held          // nil: none is held
	numbers map[string]int // that were taken last
}

// NewInstance holds no port yet. asked are the ranges to take ports from; app is the app's id, by which instances of
// one component on several hosts agree on a shared port without asking each other.
func NewInstance(app string, asked Ranges, log *slog.Logger) *Instance {
	return &Instance{app: app, asked: asked, log: log}
}

// Take takes the plan's ports, those of prefer first if they are free.
func (i *Instance) Take(p plan.Plan, prefer map[string]int) error {
	held, err := i.claim(p, prefer)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held, i.numbers = held, held.Ports()
	return nil
}

// Numbers are the ports that were taken last, by their names; nil before Take.
func (i *Instance) Numbers() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.numbers)
}

// TakeAgain holds the ports again after the process has ended. Where another process has taken one meanwhile, it takes
// others: same tells that the numbers are what they were.
func (i *Instance) TakeAgain(p plan.Plan) (same bool, err error) {
	before := i.Numbers()
	if held := i.now(); held != nil {
		if err = held.Rebind(); err == nil {
			return true, nil
		}
		i.log.Warn("ports not free after the end", "err", err)
		if err := held.Close(); err != nil {
			i.log.Warn("ports not released", "err", err)
		}
		i.mu.Lock()
		i.held = nil
		i.mu.Unlock()
	}
	if err := i.Take(p, nil); err != nil {
		return false, err
	}
	return maps.Equal(before, i.Numbers()), nil
}

// Release lets a process bind the ports that are chosen by their names.
func (i *Instance) Release(chosen func(name string) bool) error { return i.now().ReleaseOnly(chosen) }

// Listen makes a port the agent's own, as Held.Listen.
func (i *Instance) Listen(name, host string) (net.Listener, error) { return i.now().Listen(name, host) }

// Hold takes the chosen ports back.
func (i *Instance) Hold(chosen func(name string) bool) error { return i.now().RebindOnly(chosen) }

// Close gives the ports up, and logs those that are still in use.
func (i *Instance) Close() {
	held := i.now()
	if held == nil {
		return
	}
	if err := held.Rebind(); err != nil {
		i.log.Warn("ports not free after the end", "err", err)
	}
	if err := held.Close(); err != nil {
		i.log.Warn("ports not released", "err", err)
	}
}

func (i *Instance) now() *Held {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held
}

func (i *Instance) claim(p plan.Plan, prefer map[string]int) (*Held, error) {
	usable, warning, err := Usable(i.asked, "")
	if err != nil {
		return nil, err
	}
	if prefer = maps.Clone(prefer); prefer == nil {
		prefer = map[string]int{}
	}
	if warning != "" {
		i.log.Warn("ports limited", "cause", warning)
	}
	var want []Want
	for _, port := range p.Ports {
		w, err := wanted(port)
		if err != nil {
			return nil, err
		}
		w.Granted = port.Port
		if _, had := prefer[port.Name]; port.Shared && !had && w.Number == 0 && w.Granted == 0 {
			from := usable
			if len(w.Allowed) > 0 {
				from = w.Allowed
			}
			prefer[port.Name] = from.Agreed(i.app, p.Who.Component, port.Name)
		}
		want = append(want, w)
	}
	return Claim(usable, want, prefer)
}

// wanted is a port of the plan as Claim takes it.
func wanted(port plan.Port) (Want, error) {
	w := Want{Name: port.Name, Number: port.Want}
	if port.Allowed != "" {
		allowed, err := appdef.ParsePortRanges(port.Allowed)
		if err != nil {
			return w, fault.Definition(fmt.Errorf("slider.allowed.ports: %w", err))
		}
		for _, r := range allowed {
			w.Allowed = append(w.Allowed, portRange(r))
		}
	}
	if port.Exact {
		w.Allowed = Ranges{{From: port.Want, To: port.Want}}
	}
	return w, nil
}
