package logs

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// CheckSide refuses the name of a side process that the target does not have. One that has written nothing yet may be
// asked for, and so may any while the names are not known.
func (l Reader) CheckSide(ctx context.Context, t apps.Target, side string) error {
	asked, names := t.App, l.names()
	if t.Instance != nil {
		name := t.Instance.String()
		if l.Elsewhere[name] == nil {
			if _, err := l.dir(name); err != nil {
				return err
			}
		}
		asked, names = asked+"/"+name, []string{name}
	}
	app := l.Lookup.Defined(ctx, l.Facts)
	has, sure := []string{}, len(names) > 0
	for _, name := range names {
		own, all := l.Facts.Sides(app, name)
		if l.Elsewhere[name] == nil {
			own = append(own, loggedSides(l.Facts.LogDirs()[name])...)
		}
		has, sure = append(has, own...), sure && (all || len(own) > 0)
	}
	if !sure || slices.Contains(has, side) {
		return nil
	}
	slices.Sort(has)
	return exit.Usagef("%s has no side process %s; it has: %s", asked, side, wording.OrNone(slices.Compact(has)))
}

// loggedSides are the side processes that have a log in a folder.
func loggedSides(dir string) []string {
	var names []string
	entries, _ := os.ReadDir(dir) // it may be gone
	for _, e := range entries {
		rest, side := strings.CutPrefix(e.Name(), status.SidePrefix)
		for _, stream := range []string{"stdout", "stderr"} {
			name, log, _ := strings.Cut(rest, "."+stream+".log")
			if side && name != rest && (log == "" || log == ".1") {
				names = append(names, name)
			}
		}
	}
	return names
}
