package pai

import (
	"math"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// mostNumber is the largest number in a job file without another limit.
const mostNumber = 1<<31 - 1

// cursor is a node of the job file and its place; reading through it collects problems.
type cursor struct {
	*appdef.JSONNode
	l       *loading
	pointer string
}

func (c cursor) place() appdef.Place {
	return appdef.Place{File: c.l.options.Name, Pointer: c.pointer, Line: c.Line}
}

// at is the place of a member, or of the object that lacks it.
func (c cursor) at(name string) appdef.Place {
	if m := c.Member(name); m != nil {
		return appdef.Place{File: c.l.options.Name, Pointer: c.pointer + appdef.Pointer(name), Line: m.Line}
	}
	return c.place()
}

func (c cursor) bad(got, want, hint string) {
	c.l.found = append(c.l.found, c.place().Problem(got, want, hint))
}

func (c cursor) badAt(name, got, want, hint string) {
	c.l.found = append(c.l.found, c.at(name).Problem(got, want, hint))
}

func (c cursor) warnAt(name, got, want, hint string) {
	c.l.found = append(c.l.found, c.at(name).Warning(got, want, hint))
}

// get finds a member that exists and is not null.
func (c cursor) get(name string) (cursor, bool) {
	m := c.Member(name)
	if m == nil || m.Kind == appdef.JSONNull {
		return cursor{}, false
	}
	return cursor{JSONNode: m, l: c.l, pointer: c.pointer + appdef.Pointer(name)}, true
}

// text reads a text; "" if there is none.
func (c cursor) text(name string) string {
	m, ok := c.get(name)
	if !ok {
		return ""
	}
	if m.Kind != appdef.JSONText {
		m.bad(string(m.Kind), "a text", "")
		return ""
	}
	return m.Text
}

// meaning says what a required member is.
var meaning = map[string]string{
	"jobName":     "the job's name, by which it is asked for",
	"image":       "the reference of an image, or host for this host's own programs",
	"name":        "the name by which it is known",
	"command":     "what a shell runs in each task",
	"label":       "the name by which the task finds the ports",
	"uri":         "the reference of an image, or host for this host's own programs",
	"type":        "what it is: a job, or the kind of a prerequisite",
	"dockerImage": "the name of a prerequisite of type dockerimage",
	"plugin":      "the name of the plugin",
	"event":       "when the commands run",
}

// required is text for a member that must exist and not be empty.
func (c cursor) required(name string) string {
	m, ok := c.get(name)
	switch {
	case !ok:
		c.bad("no "+name, "one", meaning[name])
	case m.Kind == appdef.JSONText && m.Text == "":
		m.bad(`""`, "a text that is not empty", meaning[name])
	}
	return c.text(name)
}

// whole reads a whole number, in quotes or not; false without a valid one.
func (c cursor) whole(name string, least, most int) (int, bool) {
	m, ok := c.get(name)
	if !ok {
		return 0, false
	}
	if m.Kind != appdef.JSONNumber && m.Kind != appdef.JSONText {
		m.bad(string(m.Kind), wholeOf(least, most), "")
		return 0, false
	}
	n, err := appdef.ParseInt(integral(m))
	if err != nil || n < least || n > most {
		m.bad(appdef.Quote(m.Text), wholeOf(least, most), "")
		return 0, false
	}
	return n, true
}

// integral writes 2.0 and 1e3 as 2 and 1000: whole numbers in JSON, as PAI reads them.
func integral(m cursor) string {
	f, err := strconv.ParseFloat(m.Text, 64)
	if m.Kind == appdef.JSONNumber && err == nil && f == math.Trunc(f) && math.Abs(f) <= mostNumber {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return m.Text
}

func wholeOf(least, most int) string {
	if most == mostNumber {
		return "a whole number, " + strconv.Itoa(least) + " or more"
	}
	return "a whole number, " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
}

// wholeOr is whole with a default.
func (c cursor) wholeOr(name string, least, most, fallback int) int {
	if n, ok := c.whole(name, least, most); ok {
		return n
	}
	return fallback
}

// objects reads a list of objects; other items are reported and left out.
func (c cursor) objects(name string) []cursor {
	m, ok := c.get(name)
	if !ok {
		return nil
	}
	if m.Kind != appdef.JSONArray {
		m.bad(string(m.Kind), "a list", "")
		return nil
	}
	var objects []cursor
	for i, item := range m.Items {
		one := cursor{JSONNode: item, l: c.l, pointer: m.pointer + appdef.Pointer(strconv.Itoa(i))}
		if item.Kind != appdef.JSONObject {
			one.bad(string(item.Kind), "an object", "")
			continue
		}
		objects = append(objects, one)
	}
	return objects
}

// listOf is objects for a list that must exist with at least one item.
func (c cursor) listOf(name string) []cursor {
	m, ok := c.get(name)
	switch {
	case !ok:
		c.bad("no "+name, "a list with at least one task role", "")
	case m.Kind == appdef.JSONArray && len(m.Items) == 0:
		m.bad("an empty list", "at least one task role", "")
	}
	return c.objects(name)
}

// object reads a member that is an object.
func (c cursor) object(name string) (cursor, bool) {
	m, ok := c.get(name)
	if ok && m.Kind != appdef.JSONObject {
		m.bad(string(m.Kind), "an object", "")
		return cursor{}, false
	}
	return m, ok
}

// members are those of an object, in the order of the file.
func (c cursor) members() []cursor {
	all := make([]cursor, len(c.Members))
	for i, m := range c.Members {
		all[i] = cursor{JSONNode: m.Value, l: c.l, pointer: c.pointer + appdef.Pointer(m.Name)}
	}
	return all
}

// knows warns about members with other names: PAI refuses them, so that the user sees a misspelt name.
func (c cursor) knows(names []string) {
	for _, m := range c.Members {
		known := false
		for _, name := range names {
			known = known || name == m.Name
		}
		if !known {
			hint := appdef.DidYouMean(m.Name, names)
			if hint == "" {
				hint = "it is ignored"
			}
			c.warnAt(m.Name, "unknown key "+appdef.Quote(m.Name), "a key that PAI knows", hint)
		}
	}
}
