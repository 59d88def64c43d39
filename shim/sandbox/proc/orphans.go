package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// ID names a process of one boot and pid namespace; the zero value names none.
type ID struct {
	PID   int
	Start uint64 // clock ticks after boot
}

// Leftover is what an agent recorded of its process tree before it died.
type Leftover struct {
	Boot, PidNS string
	Guard, App  ID
	// Env, when not empty, also finds processes that left the tree: all whose environment at their exec
	// held every one of these variables. It must name one instance of one app.
	Env map[string]string
}

// errElsewhere says that the processes are in a pid namespace which this process cannot see.
var errElsewhere = errors.New("recorded in another pid namespace")

// guardPatience is how long a guard with nothing left to kill may take to write the last logs.
const guardPatience = 2 * time.Second

// KillOrphans kills what is left of a dead agent's process tree and returns when two looks at /proc have
// found none of it. No other process is touched: a number counts only with its start, boot and
// pid namespace. Normally the guard has done all this; this is for a guard that was killed with its agent. When ctx
// ends first the error is a *StuckError with the names.
func (h Host) KillOrphans(ctx context.Context, l Leftover) error {
	here, err := h.here()
	switch {
	case err != nil:
		return fmt.Errorf("kill orphans: %w", err)
	case l.Boot != here.Boot:
		return nil // ended with that boot
	case l.PidNS != here.PidNS:
		return fmt.Errorf("kill orphans: %w", errElsewhere)
	}
	left, err := h.KillAll(ctx, func() ([]Stat, error) { return h.orphans(l) })
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

// orphans are the processes that a record still names, without the guard: while it lives, it kills faster than the
// caller.
func (h Host) orphans(l Leftover) ([]Stat, error) {
	all, err := h.Processes()
	if err != nil {
		return nil, err
	}
	spared := ancestors(all, os.Getpid())
	found := WithDescendants(all, func(s Stat) bool {
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

// endGuard gives a living guard time to end by itself, for it may be writing logs, then kills it.
func (h Host) endGuard(ctx context.Context, id ID) ([]StuckProcess, error) {
	patience, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	find := func() ([]Stat, error) {
		s, err := h.Stat(id.PID)
		if isNoProcess(err) && !h.exists(id.PID) || err == nil && (!id.is(s) || !s.Alive()) {
			return nil, nil
		}
		return []Stat{s}, err
	}
	for pass := 0; ; pass++ {
		found, err := find()
		if err != nil || found == nil {
			return nil, err
		}
		if !Pause(patience, pass) {
			return h.KillAll(ctx, find)
		}
	}
}

func (id ID) is(s Stat) bool { return id.PID != 0 && id == s.ID() }
