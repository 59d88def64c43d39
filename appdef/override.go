package appdef

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SetFlag is where problems of --set are.
const SetFlag = "--set"

// clientName is a name without dots, in upper case: `--set ZK_HOST=…` gives a placeholder its value.
var clientName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// IsVariable tells the name of a placeholder (ZK_HOST) from a key of appConfig.
func IsVariable(name string) bool { return clientName.MatchString(name) }

// Change is one value of the command line. A malformed one is a problem of usage; a value that a file could also
// contain is judged as if it stood there.
type Change struct {
	Component string // empty: global
	Key       string
	Value
	Client   bool // the value of a client's name, `--set ZK_HOST=…`
	Resource bool // belongs into resources, the rest into appConfig
}

// Ours tells whether the change sets one of muster's own keys, which a level may have only once.
func (c Change) Ours() bool { return ours(c.Key) }

// ParseSet reads `[COMPONENT|global:]KEY=VALUE`; components are the existing ones, none if the definition is
// unreadable.
func ParseSet(arg string, components []string) (c Change, ok bool, found Problems) {
	name, text, whole := strings.Cut(arg, "=")
	level, key, qualified := strings.Cut(name, ":")
	if !qualified {
		level, key = "global", name
	}
	at := Place{File: SetFlag, Pointer: Pointer(level, key)}
	c = Change{Key: key, Value: Value{Text: text, Place: at}}
	switch {
	case !whole || key == "":
		return c, false, usageProblem(Place{File: SetFlag}, Quote(arg), "[COMPONENT|global:]KEY=VALUE", "")
	case !qualified && IsVariable(key):
		c.Client = true
		return c, true, nil
	}
	if level != "global" {
		c.Component = level
		if found, known := knownComponent(at, level, components, true); !known {
			return c, false, found
		}
	}
	c.Resource = strings.HasPrefix(key, "yarn.") || key == "component.unique.names"
	return c, true, nil
}

// ParseInstances reads `COMPONENT=N,…`.
func ParseInstances(arg string, components []string) (changes []Change, found Problems) {
	for part := range strings.SplitSeq(arg, ",") {
		component, count, ok := strings.Cut(strings.TrimSpace(part), "=")
		if _, err := strconv.Atoi(component); err == nil && !ok {
			component, count, ok = counted(components), component, true
		}
		at := Place{File: "--instances", Pointer: Pointer(component)}
		if !ok || component == "" {
			found = append(found, usageProblem(Place{File: "--instances"}, Quote(part), "COMPONENT=N,…", "")...)
			continue
		}
		if bad, known := knownComponent(at, component, components, false); !known {
			found = append(found, bad...)
			continue
		}
		if n, err := strconv.Atoi(count); err != nil || n < 0 {
			found = append(found, usageProblem(at, Quote(count), "a whole number, 0 or more", "")...)
			continue
		}
		changes = append(changes, Change{
			Component: component, Key: instancesKey, Value: Value{Text: count, Place: at},
			Resource: true,
		})
	}
	return changes, found
}

// counted is the component that a number alone is of: the workers, or the only component there is.
func counted(components []string) string {
	if len(components) == 1 {
		return components[0]
	}
	if slices.Contains(components, "worker") {
		return "worker"
	}
	return ""
}

func usageProblem(at Place, got, want, hint string) Problems {
	p := at.Problem(got, want, hint)
	p.Usage = true
	return Problems{p}
}

func knownComponent(at Place, name string, names []string, global bool) (Problems, bool) {
	if slices.Contains(names, name) {
		return nil, true
	}
	if len(names) == 0 { // the definition itself is unreadable
		return nil, false
	}
	if global {
		names = append(slices.Clone(names), "global")
	}
	return usageProblem(at, "the unknown component "+quote(name), "one of "+strings.Join(names, ", "),
		didYouMean(name, names)), false
}
