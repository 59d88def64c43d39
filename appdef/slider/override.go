package slider

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// What the command line changes, before anything is validated. Its own mistakes are problems of
// usage; a value that a file could hold as well is judged as if it stood there.

// setFlag is where problems of --set are.
const setFlag = "--set"

// clientName is a name without dots, in upper case: `--set ZK_HOST=…` gives a placeholder its value.
var clientName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// override applies --set, then --instances; within each the last wins.
func (l *loading) override() {
	for _, arg := range l.options.Set {
		l.set(arg)
	}
	for _, arg := range l.options.Instances {
		for part := range strings.SplitSeq(arg, ",") {
			l.instances(part)
		}
	}
}

// usage reports a mistake of the command line itself.
func (l *loading) usage(at appdef.Place, got, want, hint string) {
	p := at.Problem(got, want, hint)
	p.Usage = true
	l.found = append(l.found, p)
}

// set applies `[COMPONENT|global:]KEY=VALUE`.
func (l *loading) set(arg string) {
	name, text, ok := strings.Cut(arg, "=")
	level, key, qualified := strings.Cut(name, ":")
	if !qualified {
		level, key = "global", name
	}
	at := appdef.Place{File: setFlag, Pointer: appdef.Pointer(level, key)}
	switch {
	case !ok || key == "":
		l.usage(appdef.Place{File: setFlag}, appdef.Quote(arg), "[COMPONENT|global:]KEY=VALUE", "")
		return
	case !qualified && clientName.MatchString(key):
		l.app.Vars[key] = text
		return
	}
	component := level
	if level == "global" {
		component = ""
	} else if !l.knownComponent(at, level, true) {
		return
	}
	into, other := l.appConfig, l.resources
	if strings.HasPrefix(key, "yarn.") || key == uniqueKey {
		into, other = l.resources, l.appConfig
	}
	into.set(component, key, appdef.Value{Text: text, Place: at})
	if strings.HasPrefix(key, "muster.") || key == gpuKey {
		other.unset(component, key) // the command line's value is the only one at its level
	}
}

// instances applies one `COMPONENT=N`.
func (l *loading) instances(arg string) {
	component, count, ok := strings.Cut(strings.TrimSpace(arg), "=")
	at := appdef.Place{File: "--instances", Pointer: appdef.Pointer(component)}
	if !ok || component == "" {
		l.usage(appdef.Place{File: "--instances"}, appdef.Quote(arg), "COMPONENT=N,…", "")
		return
	}
	if !l.knownComponent(at, component, false) {
		return
	}
	if n, err := strconv.Atoi(count); err != nil || n < 0 {
		l.usage(at, appdef.Quote(count), "a whole number, 0 or more", "")
		return
	}
	l.resources.set(component, instancesKey, appdef.Value{Text: count, Place: at})
}

func (l *loading) knownComponent(at appdef.Place, name string, global bool) bool {
	names := l.app.ComponentNames()
	if slices.Contains(names, name) {
		return true
	}
	if global {
		names = append(names, "global")
	}
	if len(l.app.Components) > 0 { // else metainfo itself could not be read
		l.usage(at, "the unknown component "+appdef.Quote(name), "one of "+strings.Join(names, ", "), appdef.DidYouMean(name, names))
	}
	return false
}
