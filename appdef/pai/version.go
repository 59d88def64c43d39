package pai

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

func versions() []string { return []string{appdef.PAI05, appdef.PAI014, appdef.PAI1} }

// versionOf decides the version: the command line, then the file's own setting (muster.pai.version in the extras), then
// the fields. PAI 1 reads the same fields as 0.14, so it must be set.
func (l *loading) versionOf(c cursor) {
	at := c.place()
	l.version = told(c)
	if own, ok := ownVersion(c); ok && slices.Contains(versions(), own.Text) {
		l.version, at = own.Text, own.place()
	}
	if asked := l.options.Version; asked != "" {
		l.version, at = asked, appdef.Place{File: "--pai-version"}
		if !slices.Contains(versions(), asked) {
			p := at.Problem(appdef.Quote(asked), strings.Join(versions(), ", "), "")
			p.Usage = true
			l.found = append(l.found, p)
			l.version = told(c)
		}
	}
	l.draft.Set("", versionKey, l.version, at)
}

func ownVersion(c cursor) (cursor, bool) {
	extras, ok := c.get("extras")
	if !ok {
		return cursor{}, false
	}
	return extras.get(versionKey)
}

// told is the version that has the fields: 0.14 for fields that came after 0.5, else 0.5.
func told(c cursor) string {
	if c.Member("jobEnvs") != nil || c.Member("extras") != nil {
		return appdef.PAI014
	}
	if roles, ok := c.get("taskRoles"); ok {
		for _, role := range roles.Items {
			for _, name := range []string{"shmMB", "minFailedTaskCount", "minSucceededTaskCount"} {
				if role.Member(name) != nil {
					return appdef.PAI014
				}
			}
		}
	}
	return appdef.PAI05
}
