package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// lookFailed is logged where the checkpoints cannot be listed.
const lookFailed = "listing checkpoints failed"

// ruleOf is how the checkpoints of a plan are recognised.
func ruleOf(p plan.Plan) format.Rule {
	c := p.Checkpoint
	whole, _ := appdef.ParseWhole(c.Whole) // the definition was checked
	return format.Rule{Framework: p.Framework, Pattern: c.Pattern, Whole: format.Whole(whole), Marker: c.Marker}
}

// location is where the checkpoints of an instance lie.
type location struct {
	dir    string // the checkpoint folder, or its URL
	place  string // within dir: "." or the instance's own folder
	shared bool   // with other instances
}

// at is the path or URL of a file in it.
func (l location) at(name string) string {
	if onStore(l.dir) {
		return strings.TrimSuffix(l.dir, "/") + "/" + path.Join(l.place, name)
	}
	return filepath.Join(l.dir, l.place, name)
}

func onStore(dir string) bool { return strings.Contains(dir, "://") }

// locate finds the checkpoints of this instance: in the checkpoint folder, which all instances share unless it lies in
// the instance's own folder; or in a folder there with the name of the instance, or the number of a worker.
func (m *Manager) locate(ctx context.Context) location {
	p := m.plan
	l := location{dir: p.Checkpoint.Dir, place: ".", shared: true}
	if files.Within(p.Checkpoint.Dir, p.Process.Folder) {
		l.shared = false
		return l
	}
	names := []string{p.Who.Component + "-" + strconv.Itoa(p.Who.Index)}
	if p.Who.Role == string(appdef.RoleWorker) {
		names = append(names, strconv.Itoa(p.Who.Index))
	}
	_ = m.view(ctx, l, func(top fs.FS) error { // what cannot be read has no such folder
		for _, name := range names {
			if info, err := fs.Stat(top, name); err == nil && info.IsDir() {
				l.place, l.shared = name, false
				break
			}
		}
		return nil
	})
	return l
}

// open opens a folder of this host with the process's rights; no link in the checkpoint folder leads out of it.
func (m *Manager) open(l location) (files.UserFolder, error) {
	top, err := m.cfg.Folder(m.plan, l.dir)
	if err != nil || l.place == "." {
		return top, err
	}
	in, err := top.OpenFolder(l.place)
	return in, errors.Join(err, top.Close())
}

// view has a location read with the process's rights, as far as the process itself could follow links there.
func (m *Manager) view(ctx context.Context, l location, read func(fs.FS) error) error {
	switch {
	case onStore(l.dir):
		store, top, err := m.cfg.Open(ctx, m.plan, l.dir, false)
		if err != nil {
			return err
		}
		return read(format.OnStore(ctx, store, path.Join(top, l.place)))
	case m.plan.Root.Kind == plan.RootHost:
		return files.As(m.cfg.Owner()).ViewHost(filepath.Join(l.dir, l.place), read)
	}
	root, err := m.open(l) // a container has no more of the host than that
	if err != nil {
		return err
	}
	return errors.Join(root.View(read), root.Close())
}

// look lists the checkpoints. With warn, incomplete ones are logged once.
func (m *Manager) look(ctx context.Context, warn bool) (format.Found, location, error) {
	select {
	case m.looking <- struct{}{}:
	case <-ctx.Done(): // a start that is called off does not wait for a look that hangs
		return format.Found{}, location{}, context.Cause(ctx)
	}
	defer func() { <-m.looking }()
	l := m.locate(ctx)
	if rule := ruleOf(m.plan); m.looker == nil || !m.looker.Rule.Equal(rule) {
		m.looker = &format.Looker{Rule: rule}
	}
	var found format.Found
	looked := false
	err := m.view(ctx, l, func(tree fs.FS) (err error) {
		looked = true
		found, err = m.looker.Look(tree)
		return err
	})
	if !looked && errors.Is(err, fs.ErrNotExist) {
		return found, l, nil
	}
	if looked && warn {
		m.logTorn(l, found)
	}
	return found, l, err
}

// logTorn logs once per incomplete checkpoint newer than the one to resume from why it does not count.
func (m *Manager) logTorn(l location, found format.Found) {
	newest, ok := found.Newest()
	for _, t := range found.Torn {
		if ok && t.Step <= newest.Step || m.warned[t.Path] {
			continue
		}
		if m.warned == nil {
			m.warned = map[string]bool{}
		}
		m.warned[t.Path] = true
		m.cfg.Log.Warn("incomplete checkpoint skipped", "path", l.at(t.Path), "step", t.Step, "why", t.Why)
	}
}

// Newest finds the checkpoint to resume from, and its path or URL: that of a step, or the newest of all if no step is
// given.
func (m *Manager) Newest(
	ctx context.Context, step *int64, warn bool,
) (c format.Checkpoint, at string, ok bool) {
	found, l, err := m.look(ctx, warn)
	if err != nil {
		m.cfg.Log.Warn(lookFailed, "dir", m.plan.Checkpoint.Dir, "err", err)
	}
	if step != nil {
		c, ok = found.At(*step)
	} else {
		c, ok = found.Newest()
	}
	return c, l.at(c.Path), ok
}
