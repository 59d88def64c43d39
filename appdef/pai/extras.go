package pai

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// envForm is the form of a variable's name.
var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservation is how many seconds a debugged job's container stays when the job does not set a time.
const reservation = 604800

// The two names of jobEnvs that are settings. The text "true" does not count, as in PAI.
const (
	isDebug  = "isDebug"
	reserved = "debuggingReservationSeconds"
)

// jobEnvs reads the variables of the tasks. They are passed on unchanged.
func (l *loading) jobEnvs(c cursor) {
	envs, ok := c.object("jobEnvs")
	if !ok {
		return
	}
	flag, given := envs.get(isDebug)
	debug := given && flag.Kind == appdef.JSONBoolean && flag.Text == "true"
	if given && !debug && flag.Kind != appdef.JSONBoolean {
		envs.warnAt(isDebug, appdef.Quote(flag.Text), "true, without quotes",
			"PAI heeds nothing else: it is a variable like any other")
	}
	if debug {
		l.draft.Set("", debugKey, "true", envs.at(isDebug))
		seconds := envs.wholeOr(reserved, 0, mostReserved, reservation)
		l.draft.Set("", holdKey, strconv.Itoa(seconds), envs.at(isDebug))
	}
	for i, m := range envs.members() {
		name := envs.Members[i].Name
		switch {
		case debug && (name == isDebug || name == reserved):
		case !envForm.MatchString(name):
			m.bad("a variable "+appdef.Quote(name), "a name of letters, digits and _, no digit first", "")
		case m.Kind == appdef.JSONNull:
			envs.warnAt(name, "null", "a value", "the variable is empty")
			l.draft.Set("", envPrefix+name, "", m.place())
		case !m.Scalar():
			m.bad(string(m.Kind), "a text, a number, true or false", "")
		case strings.Contains(m.Text, "\x00"):
			m.bad("a character NUL", "a text without it", "no variable can hold it")
		default:
			l.draft.Set("", envPrefix+name, m.Text, m.place())
		}
	}
}

// mostReserved is the longest muster.hold: ten years.
const mostReserved = 10 * 365 * 24 * 3600

// extraForm finds a character that a key of extras must contain in PAI.
var extraForm = regexp.MustCompile(`[A-Za-z0-9._]`)

// extras reads muster's own keys, `muster.KEY` or `ROLE:muster.KEY`; the others are for other tools and kept.
func (l *loading) extras(c cursor) {
	extras, ok := c.object("extras")
	if !ok {
		return
	}
	for i, m := range extras.members() {
		name := extras.Members[i].Name
		role, key, qualified := strings.Cut(name, ":")
		if !qualified {
			role, key = "", name
		}
		switch {
		case !extraForm.MatchString(name):
			m.bad("a key "+appdef.Quote(name), "a name of letters, digits and . _", "")
		case !strings.HasPrefix(key, "muster.") || key == dialectKey:
			l.draft.App.Kept[keptPrefix+m.pointer] = m.Value()
		case qualified && !slices.Contains(l.draft.App.ComponentNames(), role):
			m.bad("the unknown task role "+appdef.Quote(role),
				"one of "+strings.Join(l.draft.App.ComponentNames(), ", "),
				appdef.DidYouMean(role, l.draft.App.ComponentNames()))
		case m.Kind == appdef.JSONArray || m.Kind == appdef.JSONObject:
			m.bad(string(m.Kind), "a text, a number, true, false or null", "")
		case key == versionKey && !qualified && l.options.Version != "":
			// the command line wins
		default:
			l.extra(role, key, m)
		}
	}
}

const dialectKey = "muster.dialect"

// extra sets one key in its section, over the job's own fields.
func (l *loading) extra(role, key string, m cursor) {
	switch {
	case m.Kind == appdef.JSONNull:
		l.draft.SetNull(role, key, m.place())
	case limit(key):
		l.draft.Resource(role, key, m.Text, m.place())
	default:
		l.draft.Set(role, key, m.Text, m.place())
	}
}

// limit tells whether a key belongs into resources.
func limit(key string) bool {
	return slices.ContainsFunc(appdef.Keys(), func(k appdef.Key) bool {
		if family, ok := strings.CutSuffix(k.Name, "*"); ok {
			return k.Limit && strings.HasPrefix(key, family)
		}
		return k.Limit && key == k.Name
	})
}
