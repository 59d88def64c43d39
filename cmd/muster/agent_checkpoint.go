package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/plan"
)

// saves is what an agent knows of its checkpoints.
type saves struct {
	looking sync.Mutex // who looks; a store may keep him waiting
	looker  *checkpoint.Looker
	warned  map[string]bool // torn ones that were told of

	mu     sync.Mutex
	writer *hostlock.Lock // held by the one agent of this host that stores what is in the shared folder
	failed error          // what keeps the next start from going on from where it should
	ran    int            // the generation that the folder last went on with here; 0: none
	marked int            // the generation that the folder says that of itself
	keeper *keeper        // copies to the store; nil: nothing is copied
}

// ruleOf is how a plan's checkpoints are recognised.
func ruleOf(p plan.Plan) checkpoint.Rule {
	c := p.Checkpoint
	whole, _ := appdef.ParseWhole(c.Whole) // the definition was checked
	return checkpoint.Rule{Framework: p.Framework, Pattern: c.Pattern, Whole: checkpoint.Whole(whole), Marker: c.Marker}
}

// placement is where an instance's checkpoints are.
type placement struct {
	dir    string // the checkpoint folder, or its URL
	place  string // within dir: "." or the instance's own folder
	shared bool   // with other instances
}

// at is the path or URL of something in it.
func (l placement) at(name string) string {
	if onStore(l.dir) {
		return strings.TrimSuffix(l.dir, "/") + "/" + path.Join(l.place, name)
	}
	return filepath.Join(l.dir, l.place, name)
}

func onStore(dir string) bool { return strings.Contains(dir, "://") }

// placeOf finds where this instance's checkpoints are: in the checkpoint folder, which all share, unless it is in the
// instance's own; or where the instance has a folder in it by its name, or a worker by its number, there.
func (a *agent) placeOf(ctx context.Context, p plan.Plan) placement {
	l := placement{dir: p.Checkpoint.Dir, place: ".", shared: true}
	if within(p.Checkpoint.Dir, p.Process.Folder) {
		l.shared = false
		return l
	}
	top, done, err := a.checkpointFS(ctx, p, ".")
	if err != nil {
		return l
	}
	defer done()
	names := []string{p.Who.Component + "-" + strconv.Itoa(p.Who.Index)}
	if p.Who.Role == string(appdef.RoleWorker) {
		names = append(names, strconv.Itoa(p.Who.Index))
	}
	for _, name := range names {
		if info, err := fs.Stat(top, name); err == nil && info.IsDir() {
			l.place, l.shared = name, false
			return l
		}
	}
	return l
}

// checkpointFS is a folder of the checkpoint folder, as far as the process itself could follow links there.
func (a *agent) checkpointFS(ctx context.Context, p plan.Plan, place string) (_ fs.FS, done func(), err error) {
	none := func() {}
	switch dir := p.Checkpoint.Dir; {
	case onStore(dir):
		store, top, err := a.openStore(ctx, p, dir, false)
		return checkpoint.OnStore(ctx, store, path.Join(top, place)), none, err
	case p.Root.Kind == plan.RootHost:
		return checkpoint.HostFolder(filepath.Join(dir, place)), none, nil
	default:
		root, err := openPlace(dir, place) // of the host a container has no more than that
		if err != nil {
			return nil, none, err
		}
		return checkpoint.Folder(root), func() { _ = root.Close() }, nil
	}
}

// openPlace opens a folder of the checkpoint folder; no link leads out of it.
func openPlace(dir, place string) (*os.Root, error) {
	top, err := os.OpenRoot(dir)
	if err != nil || place == "." {
		return top, err
	}
	root, err := top.OpenRoot(place)
	return root, errors.Join(err, top.Close())
}

// look gives the checkpoints that there are. Those that are torn are told of once, when tell says so.
func (a *agent) look(ctx context.Context, p plan.Plan, tell bool) (checkpoint.Found, placement, error) {
	s := &a.saves
	s.looking.Lock()
	defer s.looking.Unlock()
	l := a.placeOf(ctx, p)
	if rule := ruleOf(p); s.looker == nil || !s.looker.Rule.Equal(rule) {
		s.looker = &checkpoint.Looker{Rule: rule}
	}
	dir, done, err := a.checkpointFS(ctx, p, l.place)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint.Found{}, l, nil
	}
	if err != nil {
		return checkpoint.Found{}, l, err
	}
	defer done()
	found, err := s.looker.Look(dir)
	if tell {
		a.tellTorn(l, found)
	}
	return found, l, err
}

// tellTorn says once of each save why it does not count: of those that would be newer than what is gone on from.
func (a *agent) tellTorn(l placement, found checkpoint.Found) {
	newest, ok := found.Newest()
	for _, t := range found.Torn {
		if ok && t.Step <= newest.Step || a.saves.warned[t.Path] {
			continue
		}
		if a.saves.warned == nil {
			a.saves.warned = map[string]bool{}
		}
		a.saves.warned[t.Path] = true
		a.log.Warn("checkpoint is not whole, passed over", "path", l.at(t.Path), "step", t.Step, "why", t.Why)
	}
}

// newest looks for the checkpoint to go on from, and gives its path or URL. step is the one that every rank has; nil: the newest
// of all.
func (a *agent) newest(ctx context.Context, p plan.Plan, step *int64, tell bool) (c checkpoint.Checkpoint, at string, ok bool) {
	found, l, err := a.look(ctx, p, tell)
	if err != nil {
		a.log.Warn("look for a checkpoint", "dir", p.Checkpoint.Dir, "err", err)
	}
	if step != nil {
		c, ok = found.At(*step)
	} else {
		c, ok = found.Newest()
	}
	return c, l.at(c.Path), ok
}
