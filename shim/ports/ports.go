package ports

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/hostlock"
)

// ErrNone says that no permitted port could be had.
var ErrNone = errors.New("no port is free")

// Want is one port asked for.
type Want struct {
	Name    string // the configuration key; unique
	Number  int    // taken if it can be had (`DEFAULT_n`); 0: any
	Allowed Ranges // nil: the range of Claim; else no other will do
	// Granted is what the launcher has reserved for this, in whichever range; 0: nothing. It is tried first.
	Granted int
}

// Held are claimed ports. Its methods may be called from any goroutine.
type Held struct {
	mu    sync.Mutex
	ports []*port // in the order of the wants
}

type port struct {
	name   string
	number int
	lock   *hostlock.Lock
	holder int  // descriptor, -1: none
	own    bool // the agent itself listens at it, for good
}

// Claim takes one port for each want, or none at all. prefer names the numbers to ask for first: a dead predecessor's,
// whose old connections do not forbid them. Then come the wanted numbers, then the rest from a random start.
// The error is an ErrNone that names the want and its list.
func Claim(r Ranges, want []Want, prefer map[string]int) (*Held, error) {
	return claim(r, want, prefer, rand.IntN)
}

func claim(r Ranges, want []Want, prefer map[string]int, random func(int) int) (*Held, error) {
	h := &Held{ports: make([]*port, len(want))}
	// What is asked for by number goes first, or another want might take it.
	for i, w := range want {
		if slices.ContainsFunc(want[:i], func(o Want) bool { return o.Name == w.Name }) {
			return nil, errors.Join(fmt.Errorf("port %s: asked for twice", w.Name), h.Close())
		}
		preferred := prefer[w.Name]
		if w.Granted > 0 {
			preferred = w.Granted
		} else if !permitted(w, r).Contains(preferred) {
			preferred = 0 // it comes from the registry: whoever may write the app's keys could name any
		}
		h.ports[i] = first(w, preferred)
	}
	for i, w := range want {
		if h.ports[i] != nil {
			continue
		}
		p, err := anyOf(w, permitted(w, r), random)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		h.ports[i] = p
	}
	return h, nil
}

func permitted(w Want, r Ranges) Ranges {
	if w.Allowed != nil {
		return w.Allowed
	}
	return r
}

// first is nil when neither the preferred nor the wanted number can be had.
func first(w Want, preferred int) *port {
	for _, n := range []int{preferred, w.Number} {
		if n == 0 || w.Allowed != nil && !w.Allowed.Contains(n) {
			continue
		}
		if p, err := take(w.Name, n, holdAgain); err == nil {
			return p
		}
	}
	return nil
}

func anyOf(w Want, from Ranges, random func(int) int) (*port, error) {
	numbers := from.numbers()
	if len(numbers) == 0 {
		return nil, fmt.Errorf("port %s: %w: the range is empty", w.Name, ErrNone)
	}
	start := random(len(numbers))
	numbers = slices.Concat(numbers[start:], numbers[:start])
	why := map[string]int{} // reason → how often
	var foreign []int
	hold := func(n int) (int, error) { return holdPort(n, false) }
	for _, n := range numbers {
		p, err := take(w.Name, n, hold)
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, errForeign):
			foreign = append(foreign, n)
			continue
		case !refusal(err):
			return nil, fmt.Errorf("port %s: %w", w.Name, err)
		}
		why[err.Error()]++
	}
	for _, n := range foreign { // anybody can announce a port: that it can be bound is what counts
		p, err := takeBeside(w.Name, n, hold)
		switch {
		case err == nil:
			return p, nil
		case !refusal(err):
			return nil, fmt.Errorf("port %s: %w", w.Name, err)
		}
		why[err.Error()]++
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		reasons = append(reasons, fmt.Sprintf("%d × %s", why[reason], reason))
	}
	return nil, fmt.Errorf("port %s: %w in %s (%s)", w.Name, ErrNone, from, strings.Join(reasons, "; "))
}

// refusal tells that a port is not to be had, and another may be.
func refusal(err error) bool {
	return errors.Is(err, hostlock.ErrHeld) || errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EACCES)
}

// errForeign says that a process of another user, not root, announces the port as its agent's.
var errForeign = errors.New("announced by another user")

// take leaves a port alone that another user's agent may have chosen and its process not bound yet.
func take(name string, number int, hold func(int) (int, error)) (*port, error) {
	p, err := takeBeside(name, number, hold)
	if err == nil && p.lock.Other() != "" {
		return nil, errors.Join(errForeign, closeFD(&p.holder), p.lock.Release())
	}
	return p, err
}

func takeBeside(name string, number int, hold func(int) (int, error)) (*port, error) {
	lock, err := hostlock.Take(lockName(number))
	if errors.Is(err, hostlock.ErrHeld) {
		return nil, hostlock.ErrHeld // the caller names the number
	}
	if err != nil {
		return nil, err
	}
	holder, err := hold(number)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return &port{name: name, number: number, lock: lock, holder: holder}, nil
}

// Ports are the numbers by name.
func (h *Held) Ports() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	numbers := make(map[string]int, len(h.ports))
	for _, p := range h.ports {
		numbers[p.name] = p.number
	}
	return numbers
}

// Release lets the process bind: call it right before the start. The lock among agents stays.
func (h *Held) Release() error { return h.ReleaseOnly(every) }

// ReleaseOnly is Release of the ports whose names are chosen.
func (h *Held) ReleaseOnly(chosen func(name string) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all error
	for _, p := range h.ports {
		if !chosen(p.name) {
			continue
		}
		if err := closeFD(&p.holder); err != nil {
			all = errors.Join(all, fmt.Errorf("release port %d: %w", p.number, err))
		}
	}
	return all
}

// Listen makes a port the agent's own: it listens there until the listener is closed, through all starts of the
// process; then Rebind takes the port back. A host that is not this machine's own address means all addresses.
func (h *Held) Listen(name, host string) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.ports {
		if p.name != name {
			continue
		}
		if err := closeFD(&p.holder); err != nil {
			return nil, fmt.Errorf("listen at port %d: %w", p.number, err)
		}
		number := strconv.Itoa(p.number)
		l, err := net.Listen("tcp", net.JoinHostPort(host, number))
		if err != nil {
			l, err = net.Listen("tcp", ":"+number)
		}
		if err != nil {
			return nil, err
		}
		p.own = true
		return &ownListener{l, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			p.own = false
		}}, nil
	}
	return nil, fmt.Errorf("port %s: %w", name, ErrNone)
}

// ownListener says when it is closed.
type ownListener struct {
	net.Listener
	closed func()
}

func (l *ownListener) Close() error {
	err := l.Listener.Close()
	l.closed()
	return err
}

// Rebind takes the ports back after an exit, whatever connections the process had. The error names those that
// another process holds now; the others are held. It may be called again.
func (h *Held) Rebind() error { return h.RebindOnly(every) }

// RebindOnly is Rebind of the ports whose names are chosen.
func (h *Held) RebindOnly(chosen func(name string) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all error
	for _, p := range h.ports {
		if !chosen(p.name) {
			continue
		}
		if p.holder >= 0 || p.lock == nil || p.own {
			continue
		}
		fd, err := holdAgain(p.number)
		if err != nil {
			all = errors.Join(all, fmt.Errorf("bind port %d (%s) again: %w", p.number, p.name, err))
			continue
		}
		p.holder = fd
	}
	return all
}

func every(string) bool { return true }

// Close gives the ports up.
func (h *Held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all error
	for _, p := range h.ports {
		if p != nil {
			all = errors.Join(all, closeFD(&p.holder), p.lock.Release())
			p.lock = nil
		}
	}
	return all
}

// lockName is the name of a port's lock. Hosts in network namespaces of one machine have the same folder of locks, and
// ports of their own.
func lockName(number int) string {
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "port/" + strconv.Itoa(number)
	}
	return "port/" + network + "/" + strconv.Itoa(number)
}
