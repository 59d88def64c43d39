package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const sweepTime = 5 * time.Second

// sweep kills and reaps what a dead guard left to the calling process, its subreaper: all children in
// foreign sessions and everything below them. It returns how each of those children ended and what is still
// alive after 5 s.
func sweep(h Host) (map[int]syscall.WaitStatus, []StuckProcess) {
	exits := map[int]syscall.WaitStatus{}
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	left, err := h.killAll(ctx, func() ([]Stat, error) { return foreign(h, exits) })
	if err != nil {
		left = append(left, StuckProcess{Name: "unknown", State: '?', Err: err})
	}
	return exits, left
}

// living are the guards of this process, which are children in sessions of their own too. A name proves nothing: any
// process may take theirs.
var living = guards{known: map[ProcessID]bool{}}

// guards are locked for reading while one is born, so that who looks at all children knows of each.
type guards struct {
	sync.RWMutex
	mu    sync.Mutex
	known map[ProcessID]bool
}

func (g *guards) add(id ProcessID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[id] = true
}

func (g *guards) remove(id ProcessID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
}

func (g *guards) has(s Stat) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[ProcessID{s.PID, s.Start}]
}

func foreign(h Host, exits map[int]syscall.WaitStatus) ([]Stat, error) {
	living.Lock() // no guard is born meanwhile that it does not know
	defer living.Unlock()
	all, err := h.Processes()
	if err != nil {
		return nil, err
	}
	self, session := os.Getpid(), 0
	if s, err := h.Stat(self); err == nil {
		session = s.Session
	}
	orphan := func(s Stat) bool {
		return s.PPID == self && s.Session != session && !living.has(s)
	}
	found := withDescendants(all, orphan)
	return slices.DeleteFunc(found, func(s Stat) bool {
		if s.PPID == self {
			return reap(s.PID, exits)
		}
		return !s.Alive()
	}), nil
}

func reap(pid int, exits map[int]syscall.WaitStatus) bool {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG|unix.WALL, nil)
	if got == pid {
		exits[pid] = status
	}
	return got == pid || errors.Is(err, syscall.ECHILD)
}

// ProcessID names a process of one boot and pid namespace; the zero value names none.
type ProcessID struct {
	PID   int
	Start uint64 // clock ticks after boot
}

// Leftover is what an agent recorded of its process tree before it died.
type Leftover struct {
	Boot, PidNS string
	Guard, App  ProcessID
	// Env, when not empty, also finds processes that left the tree: all whose environment at their exec
	// held every one of these variables. It must name one instance of one app.
	Env map[string]string
}

// ErrElsewhere says that the processes are in a pid namespace which this process cannot see.
var ErrElsewhere = errors.New("recorded in another pid namespace")

// guardPatience is how long a guard with nothing left to kill may take to write the last logs.
const guardPatience = 2 * time.Second

// KillOrphans kills what is left of a dead agent's process tree and returns when two looks at /proc have
// found none of it. No stranger is touched: a number counts only with its start, boot and
// pid namespace. Normally the guard has done all this; this is for when it was killed with its agent. When
// ctx ends first the error is a *StuckError with the names.
func (h Host) KillOrphans(ctx context.Context, l Leftover) error {
	here, err := h.here()
	switch {
	case err != nil:
		return fmt.Errorf("kill orphans: %w", err)
	case l.Boot != here.Boot:
		return nil // ended with that boot
	case l.PidNS != here.PidNS:
		return fmt.Errorf("kill orphans: %w", ErrElsewhere)
	}
	left, err := h.killAll(ctx, func() ([]Stat, error) { return h.orphans(l) })
	if err == nil && left == nil {
		left, err = h.endGuard(ctx, l.Guard)
	}
	switch {
	case err != nil:
		return fmt.Errorf("kill orphans: %w", err)
	case left != nil:
		return fmt.Errorf("kill orphans: %w", &StuckError{Processes: left})
	}
	return nil
}

// orphans are what a record still names, but for the guard itself: alive, it kills faster than we do.
func (h Host) orphans(l Leftover) ([]Stat, error) {
	all, err := h.Processes()
	if err != nil {
		return nil, err
	}
	spared := ancestors(all, os.Getpid())
	found := withDescendants(all, func(s Stat) bool {
		if slices.Contains(spared, s.PID) {
			return false
		}
		return l.Guard.is(s) || l.App.is(s) || h.carries(s, l.Env)
	})
	return slices.DeleteFunc(found, func(s Stat) bool {
		return l.Guard.is(s) || !s.Alive() || slices.Contains(spared, s.PID)
	}), nil
}

func (h Host) carries(s Stat, env map[string]string) bool {
	if len(env) == 0 {
		return false
	}
	has := h.environ(s.PID)
	for name, value := range env {
		if !slices.Contains(has, name+"="+value) {
			return false
		}
	}
	return true
}

// endGuard lets a guard that lives end by itself for a while, for it may be writing logs, then kills it.
func (h Host) endGuard(ctx context.Context, id ProcessID) ([]StuckProcess, error) {
	patience, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	find := func() ([]Stat, error) {
		s, err := h.Stat(id.PID)
		if isNoProcess(err) || err == nil && (!id.is(s) || !s.Alive()) {
			return nil, nil
		}
		return []Stat{s}, err
	}
	for pass := 0; ; pass++ {
		found, err := find()
		if err != nil || found == nil {
			return nil, err
		}
		if !pause(patience, pass) {
			return h.killAll(ctx, find)
		}
	}
}

func (id ProcessID) is(s Stat) bool { return id.PID != 0 && id.PID == s.PID && id.Start == s.Start }
