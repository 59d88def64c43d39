package sandbox

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// sweep kills and reaps what a dead guard left to the calling process, its subreaper: all children in
// foreign sessions and everything below them. It returns how each of those children ended and what is still
// alive after 5 s.
func sweep(h proc.Host) (map[int]syscall.WaitStatus, []proc.StuckProcess) {
	exits := map[int]syscall.WaitStatus{}
	ctx, cancel := bounded(sweepTime)
	defer cancel()
	left, err := h.KillAll(ctx, func() ([]proc.Stat, error) { return foreign(h, exits) })
	if err != nil {
		left = append(left, proc.StuckProcess{Name: "unknown", State: '?', Err: err})
	}
	return exits, left
}

// liveGuards are the guards of this process, which are children in sessions of their own too. A name proves nothing:
// any process may take the name of a guard.
var liveGuards = guardSet{known: map[proc.ID]bool{}}

// guardSet is locked for reading while a guard is started, so that a look at all children finds each guard listed.
type guardSet struct {
	sync.RWMutex
	mu    sync.Mutex
	known map[proc.ID]bool
}

func (g *guardSet) add(id proc.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[id] = true
}

func (g *guardSet) remove(id proc.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
}

func (g *guardSet) has(s proc.Stat) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[s.ID()]
}

func foreign(h proc.Host, exits map[int]syscall.WaitStatus) ([]proc.Stat, error) {
	liveGuards.Lock() // no guard is started meanwhile that it does not list
	defer liveGuards.Unlock()
	all, err := h.Processes()
	if err != nil {
		return nil, err
	}
	self, session := os.Getpid(), 0
	if s, err := h.Stat(self); err == nil {
		session = s.Session
	}
	orphan := func(s proc.Stat) bool {
		return s.PPID == self && s.Session != session && !liveGuards.has(s)
	}
	found := proc.WithDescendants(all, orphan)
	return slices.DeleteFunc(found, func(s proc.Stat) bool {
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
