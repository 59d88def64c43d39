package appdef

import (
	"fmt"
	"regexp"
	"strings"
)

// mostName is the longest name of an app, a run or a component: one label of a host name.
const mostName = 63

// nameForm is that of app ids, run ids and components.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,62}$`)

// ValidName tells whether an app, a run or a component may have this name.
func ValidName(s string) bool { return nameForm.MatchString(s) }

// CheckName is an error unless the name is valid. what is the subject of the error: a flag, or the kind of the name.
func CheckName(what, name string) error {
	if ValidName(name) {
		return nil
	}
	return fmt.Errorf("%s %s: want up to %d of A-Z a-z 0-9 . _ ~ -, beginning with a letter or digit", what,
		quote(name), mostName)
}

// NameOf makes a valid name from any text, with this end.
func NameOf(text, end string) string {
	name := strings.TrimLeft(strings.Map(func(r rune) rune {
		if ValidName("a" + string(r)) {
			return r
		}
		return '-'
	}, text), "._~-")
	if name == "" { // nothing of the text is ASCII
		name = "app"
	}
	return name[:min(len(name), mostName-len(end))] + end
}
