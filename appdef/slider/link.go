package slider

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/muster-agent/muster/appdef"
)

// mostLinks bounds the problems of links: a folder that was copied from elsewhere has hundreds.
const mostLinks = 10

// links reports those of package/ that no agent lays out, for they lead out of the package. The rest of the folder may
// hold the work of a run, whose links are nobody's business here.
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

// walkLinks visits the links at and below a name until visit has enough. What cannot be read has none.
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

// badLink tells of a link that leads out of the package, by its text or through others; empty: it does not. One that
// leads nowhere inside is the package's own affair.
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
