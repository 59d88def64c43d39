package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/plan"
)

// saves is what an agent knows of its checkpoints.
type saves struct {
	mu     sync.Mutex
	looker *checkpoint.Looker
	warned map[string]bool // torn ones that were told of
}

// ruleOf is how a plan's checkpoints are recognised.
func ruleOf(p plan.Plan) checkpoint.Rule {
	return checkpoint.Rule{Framework: p.Framework, Pattern: p.Checkpoint.Pattern}
}

// look gives the checkpoints that there are. Those that are torn are told of once, when tell says so.
func (a *agent) look(p plan.Plan, tell bool) (checkpoint.Found, error) {
	s := &a.saves
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looker == nil || s.looker.Rule != ruleOf(p) {
		s.looker = &checkpoint.Looker{Rule: ruleOf(p)}
	}
	found, err := a.lookIn(p, s.looker)
	if tell {
		a.tellTorn(p, found)
	}
	return found, err
}

// lookIn follows links only to where the process could.
func (a *agent) lookIn(p plan.Plan, looker *checkpoint.Looker) (checkpoint.Found, error) {
	if strings.Contains(p.Checkpoint.Dir, "://") {
		return checkpoint.Found{}, nil // the program finds its own on a store
	}
	if p.Root.Kind == plan.RootHost {
		return looker.Look(checkpoint.HostFolder(p.Checkpoint.Dir))
	}
	root, err := os.OpenRoot(p.Checkpoint.Dir) // of the host a container has no more than that
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint.Found{}, nil
	}
	if err != nil {
		return checkpoint.Found{}, err
	}
	defer root.Close()
	return looker.Look(checkpoint.Folder(root))
}

// tellTorn says once of each save why it does not count: of those that would be newer than what is gone on from.
func (a *agent) tellTorn(p plan.Plan, found checkpoint.Found) {
	newest, ok := found.Newest()
	for _, t := range found.Torn {
		if ok && t.Step <= newest.Step || a.saves.warned[t.Path] {
			continue
		}
		if a.saves.warned == nil {
			a.saves.warned = map[string]bool{}
		}
		a.saves.warned[t.Path] = true
		a.log.Warn("checkpoint is not whole, passed over", "path", filepath.Join(p.Checkpoint.Dir, t.Path), "step", t.Step, "why", t.Why)
	}
}

// newest looks for the checkpoint to go on from; upTo is the step that every rank has, nil for any. Where nothing that old
// is left, it is the newest of all.
func (a *agent) newest(p plan.Plan, upTo *int64, tell bool) (checkpoint.Checkpoint, bool) {
	found, err := a.look(p, tell)
	if err != nil {
		a.log.Warn("look for a checkpoint", "dir", p.Checkpoint.Dir, "err", err)
	}
	if upTo != nil {
		if c, ok := found.Until(*upTo); ok {
			return c, true
		}
	}
	return found.Newest()
}
