package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wording"
)

// warnUnmatched is the kind of the warning that no file in the checkpoint folder is a checkpoint. Without it nobody
// sees that a job has no progress, gets no restart budget back and resumes from nothing.
const warnUnmatched = "checkpoint pattern"

// unmatchedPatience is how long a folder may have files and no checkpoint: the first save may be under way.
const unmatchedPatience = time.Minute

// unmatched is since when a checkpoint folder has files and no checkpoint; zero: it does not.
type unmatched struct{ since time.Time }

// see takes a look at the folder, and tells whether it is time to warn.
func (u *unmatched) see(others []string, now time.Time) bool {
	switch {
	case len(others) == 0:
		u.since = time.Time{}
	case u.since.IsZero():
		u.since = now
	}
	return !u.since.IsZero() && now.Sub(u.since) >= unmatchedPatience
}

// tellUnmatched warns of a folder whose files no rule takes for checkpoints, and takes that back.
func (w *watch) tellUnmatched(found format.Found, l location, now time.Time, err error) {
	if err != nil {
		return
	}
	others := l.others(found)
	if w.others.see(others, now) {
		w.m.cfg.Notices.Warn(warnUnmatched, unmatchedText(w.m.plan, l, others))
		return
	}
	if len(found.Whole) > 0 {
		w.m.cfg.Notices.Mended(warnUnmatched, "a checkpoint is seen")
	}
}

// others are what lies there and is no checkpoint; other instances may have folders of their own in a shared place.
func (l location) others(found format.Found) []string {
	if !l.shared {
		return found.Others
	}
	return slices.DeleteFunc(slices.Clone(found.Others), isInstance)
}

// warnNone warns of a folder without a checkpoint whose process has failed.
func (m *Manager) warnNone(ctx context.Context, found format.Found, l location) {
	others := l.others(found)
	switch {
	case len(others) == 0:
		m.seeMisplaced(ctx, l)
	case !l.shared || m.plan.Who.WorldSize <= 1 || m.quiet(ctx, l, others):
		m.cfg.Notices.Warn(warnUnmatched, unmatchedText(m.plan, l, others))
	}
}

// quietTime is how long nothing has changed in a shared folder when no other instance is saving there.
const quietTime = 5 * time.Second

func (m *Manager) quiet(ctx context.Context, l location, others []string) bool {
	quiet := true
	err := m.view(ctx, l, func(tree fs.FS) error {
		for _, name := range others {
			info, err := fs.Stat(tree, strings.TrimSuffix(name, "/"))
			quiet = quiet && err == nil && time.Since(info.ModTime()) >= quietTime
		}
		return nil
	})
	return quiet && err == nil
}

// mostFolders is how many folders of the process are looked at for misplaced checkpoints.
const mostFolders = 50

// seeMisplaced warns of checkpoints that the process has saved in its own folder, as a program does whose folder is a
// relative path: the checkpoint folder is empty, and no other instance sees them.
func (m *Manager) seeMisplaced(ctx context.Context, l location) {
	own := location{dir: m.plan.Process.Folder, place: "."}
	if own.dir == "" || onStore(l.dir) || files.Within(l.dir, own.dir) {
		return
	}
	m.mu.Lock()
	began := m.began
	m.mu.Unlock()
	_ = m.view(ctx, own, func(tree fs.FS) error { // what cannot be read has none
		if name := savedBelow(tree, ruleOf(m.plan), began); name != "" {
			m.cfg.Notices.Warn(warnUnmatched, misplacedText(name, l))
		}
		return nil
	})
}

// savedBelow is a checkpoint that was saved after that time in a folder, or in one right below; a program that was
// brought works in app/install. "": there is none.
func savedBelow(tree fs.FS, rule format.Rule, began time.Time) string {
	var folders []string
	for _, top := range []string{"app/install", "."} {
		folders = append(folders, top)
		entries, _ := fs.ReadDir(tree, top)
		for _, e := range entries {
			if e.IsDir() {
				folders = append(folders, path.Join(top, e.Name()))
			}
		}
	}
	for _, folder := range folders[:min(len(folders), mostFolders)] {
		sub, err := fs.Sub(tree, folder)
		if err != nil {
			continue
		}
		found, err := rule.Look(sub)
		if c, ok := found.Newest(); err == nil && ok && c.SavedAfter(began) {
			return strings.TrimPrefix(path.Join(folder, c.Path), "app/install/")
		}
	}
	return ""
}

func misplacedText(name string, l location) string {
	return fmt.Sprintf("the process has saved %s in its own folder, which no other instance sees and muster does not "+
		"look at: a restart begins anew; have it save to $MUSTER_CHECKPOINT_DIR (%s)", name, l.at(""))
}

// isInstance tells a folder that is named after an instance or the number of a worker.
func isInstance(name string) bool {
	folder, ok := strings.CutSuffix(name, "/")
	_, err := registry.ParseInstance(folder)
	return ok && (err == nil || strings.Trim(folder, "0123456789") == "")
}

// mostOthers is how many names a warning has.
const mostOthers = 3

func unmatchedText(p plan.Plan, l location, others []string) string {
	c := p.Checkpoint
	rule := fmt.Sprintf("muster.checkpoint.pattern %q", c.Pattern)
	switch {
	case c.Pattern == "" && c.Marker != "":
		rule = fmt.Sprintf("muster.checkpoint.marker %q", c.Marker)
	case c.Pattern == "" && (p.Framework == "" || p.Framework == "none"):
		rule = "muster.checkpoint.pattern, which is not set"
	case c.Pattern == "":
		rule = "how " + p.Framework + " names them"
	}
	return fmt.Sprintf("no file in %s is a checkpoint by %s: %s; progress is not seen and a restart begins anew; if "+
		"these are checkpoints, set muster.checkpoint.pattern to a glob that matches them and ends with the step, "+
		"such as %q", l.at(""), rule, wording.First(others, mostOthers), suggested(others))
}

// suggested is a pattern for names of which the last has a number, or an example.
func suggested(others []string) string {
	for _, name := range slices.Backward(others) {
		name = strings.TrimSuffix(name, "/")
		if end := strings.LastIndexAny(name, "0123456789"); end >= 0 {
			begin := strings.LastIndexFunc(name[:end+1], func(r rune) bool { return r < '0' || r > '9' }) + 1
			return name[:begin] + "*" + name[end+1:]
		}
	}
	return "step-*"
}
