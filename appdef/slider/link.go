package slider

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/muster-agent/muster/appdef"
)

// mostLinks limits the problems of links: a folder copied from elsewhere may have hundreds.
const mostLinks = 10

// links reports the links of package/ that lead out of the package, because no agent unpacks them. The rest of the
// folder may hold the work of a run, whose links do not matter here.
func (l *loading) links() {
	told := 0
	walkLinks(l.fsys, "package", func(name string) bool {
		if got := badLink(l.fsys, name); got != "" {
			l.found = append(l.found, appdef.Place{File: name}.Problem(got, "one that stays inside the package",
				"no agent takes it, and no build"))
			told++
		}
		return told < mostLinks
	})
}

// walkLinks visits the links at and below a name until visit returns false. Unreadable folders have none.
func walkLinks(fsys fs.FS, top string, visit func(name string) bool) {
	if info, err := fs.Lstat(fsys, top); err != nil || info.Mode()&fs.ModeSymlink != 0 { // WalkDir would follow it
		if err == nil {
			visit(top)
		}
		return
	}
	_ = fs.WalkDir(fsys, top, func(name string, d fs.DirEntry, err error) error { // what cannot be read has none
		switch {
		case err != nil:
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0 && !visit(name):
			return fs.SkipAll
		}
		return nil
	})
}

// badLink describes a link that leads out of the package, by its text or through others; empty: it does not. Broken
// links inside the package are not reported.
func badLink(fsys fs.FS, name string) string {
	target, err := fs.ReadLink(fsys, name)
	if err != nil {
		return "a link that cannot be read"
	}
	_, err = fs.Stat(fsys, name)
	if path.IsAbs(target) || !fs.ValidPath(path.Join(path.Dir(name), target)) || err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("a link to %.200q", target)
	}
	return ""
}
