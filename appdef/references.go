package appdef

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// known tells whether Resolver can have a value for a placeholder that is no reference.
func (v *validation) known(name string) bool {
	r := Resolver{App: v.app}
	if _, ok := r.fixed(name); ok {
		return true
	}
	if base, ok := strings.CutSuffix(name, ".lc"); ok && lowered(base) {
		return true
	}
	if _, ok := r.hostOf(name); ok {
		return true
	}
	_, given := v.app.Vars[name]
	return given || slices.Contains(ClientNames(), name)
}

// meant is the hint for an unknown placeholder: the nearest component for a host, else the nearest name.
func (v *validation) meant(name string) string {
	if component, ok := strings.CutSuffix(name, hostSuffix); ok {
		if near, ok := Nearest(component, v.app.ComponentNames()); ok {
			return "did you mean ${" + near + hostSuffix + "}?"
		}
		return ""
	}
	return didYouMean(name, append(ClientNames(), "USER", "USER_NAME", "CLUSTER_NAME", "CLUSTER", "APP_NAME",
		"COMPONENT_NAME", "APP_COMPONENT_NAME",
		"COMPONENT_PREFIX", "COMPONENT_ID", "CONTAINER_ID", "AGENT_WORK_ROOT", "AGENT_LOG_ROOT",
		"CLUSTER_NAME.lc", "APP_NAME.lc", "COMPONENT_NAME.lc", "APP_COMPONENT_NAME.lc", "COMPONENT_PREFIX.lc"))
}

// defined tells whether a value of the configuration exists for a component, or for any when it is -1.
func (v *validation) defined(component int, dict, key string) bool {
	if dict == sideDict && v.portBeside(component, key) {
		return true
	}
	if component >= 0 {
		_, ok := Resolver{
			App: v.app, Component: v.app.Components[component].Name, WorkRoot: "/", LogRoot: "/",
			ContainerID: "1", Tag: 1,
		}.site(dict, key)
		return ok
	}
	if _, ok := v.app.Defaults[dict][key]; ok || dict == "global" && slices.Contains(injectedKeys(), key) {
		return true
	}
	name := "site." + dict + "." + key
	if _, ok := v.app.Config[name]; ok {
		return true
	}
	return slices.ContainsFunc(v.app.Components, func(c Component) bool { _, ok := c.Config[name]; return ok })
}

// siteNames lists the keys of the configuration, for hints.
func (v *validation) siteNames() []string {
	names := map[string]bool{}
	collect := func(config map[string]string) {
		for key := range config {
			if strings.HasPrefix(key, "site.") {
				names[key] = true
			}
		}
	}
	collect(v.app.Config)
	for _, c := range v.app.Components {
		collect(c.Config)
	}
	return slices.Sorted(maps.Keys(names))
}

// texts checks the placeholders and port patterns of every configuration value, each where it was
// written: the global ones once, then what each component has of its own.
func (v *validation) texts() {
	dicts := v.app.Declared("")
	for _, key := range slices.Sorted(maps.Keys(v.app.Config)) {
		v.text(v.app.place("config", key), -1, key, v.app.Config[key], dicts)
	}
	for i, c := range v.app.Components {
		for _, key := range slices.Sorted(maps.Keys(c.Config)) {
			at, own := v.app.Places[Pointer("components", strconv.Itoa(i), "config", key)]
			global, inherited := v.app.Config[key]
			if !own && inherited && global == c.Config[key] {
				continue
			}
			if !own {
				at = v.app.componentPlace(i, "config", key)
			}
			v.text(at, i, key, c.Config[key], dicts)
		}
	}
	v.allowedPorts(v.app.place("config", AllowedPortsKey), v.app.Config[AllowedPortsKey])
	for i, c := range v.app.Components {
		if own := c.Config[AllowedPortsKey]; own != v.app.Config[AllowedPortsKey] {
			v.allowedPorts(v.app.componentPlace(i, "config", AllowedPortsKey), own)
		}
	}
}

func (v *validation) allowedPorts(at Place, ports string) {
	if ports == "" {
		return
	}
	if _, err := ParsePortRanges(ports); err != nil {
		v.bad(at, quote(ports), "ports and ranges from 1 to 65535, such as 9000,9010-9020", "")
	}
}

// text checks one value. In a shell's text it checks only what is certainly muster's, because the shell has
// placeholders of the same form.
func (v *validation) text(at Place, component int, key, text string, dicts map[string]bool) {
	dict, rest, site := siteKeyIn(key, dicts)
	if !site && !strings.HasPrefix(key, "muster.") {
		return
	}
	if site && rest == "" {
		v.warn(at, "the key "+quote(key), "site.<dictionary>.<key>", "")
		return
	}
	if site && !dicts[dict] && dict != "fs" {
		v.warn(at, "a value for the dictionary "+quote(dict)+", which no configFiles declares",
			"the dictionary global, or one that is declared",
			"scripts get it all the same, under Slider they did not; declare it in configFiles")
	}
	for _, name := range Placeholders(text) {
		v.placeholder(at, component, name, site)
	}
	if hasPort(text) {
		v.ports(at, component, key, text, site)
	}
}

func (v *validation) placeholder(at Place, component int, name string, site bool) {
	if strings.HasSuffix(name, portSuffix) {
		return
	}
	if dict, key, refers := siteKeyIn(name, v.app.Defaults); refers {
		if !v.defined(component, dict, key) && !v.defined(-1, dict, key) {
			v.bad(at, "${"+name+"}, which is not defined", "a key of appConfig",
				didYouMean("site."+dict+"."+key, v.siteNames()))
		}
		return
	}
	if site && !v.known(name) {
		v.warn(at, "the unknown placeholder ${"+name+"}", "a placeholder that muster knows", stays(name, v.meant(name)))
	}
}

// stays says what happens to an unknown placeholder if there is no better hint.
func stays(name, hint string) string {
	switch {
	case hint != "":
		return hint
	case IsVariable(name):
		return "it stays as written; --set " + name + "=VALUE gives it a value"
	}
	return "it stays as written, for programs that fill it in themselves; where none does, write the value"
}

// ports checks the port patterns of one value.
func (v *validation) ports(at Place, component int, key, text string, site bool) {
	if !site {
		v.bad(at, "a port pattern in "+quote(text), "it in a value site.<dictionary>.<key>",
			"and ${@//site/<dictionary>/<key>} here")
		return
	}
	names := v.names()
	var mine bool
	var owners []string
	for _, name := range Placeholders(text) {
		owner, ok := strings.CutSuffix(name, portSuffix)
		if !ok {
			continue
		}
		owners = append(owners, owner)
		if _, ok := v.where[owner]; !ok {
			v.bad(at, "${"+name+"} of no component", OneOf(names, "a component"), didYouMean(owner, names))
			continue
		}
		mine = mine || component >= 0 && owner == v.app.Components[component].Name
		if t, err := parsePort(text, owner); err != nil {
			v.bad(at, quote(text), "{DEFAULT_n} with a port number, 0 to 65535", "")
		} else if suffix, ok := t.badSuffix(); ok {
			v.bad(at, quote(suffix)+" after ${"+name+"}", "{DEFAULT_n}, then {PER_CONTAINER}, or neither", "")
		}
	}
	if component >= 0 && !mine && len(owners) > 0 && !v.handedOn(component, key, owners, text) {
		v.warn(at, "the port of "+strings.Join(owners, ", ")+" in the section of "+v.app.Components[component].Name,
			"a key for which "+owners[0]+" claims a port itself, without {PER_CONTAINER} here", "it reads 0 here")
	}
}

// handedOn tells whether another component claims the port that a component's value names.
func (v *validation) handedOn(component int, key string, owners []string, text string) bool {
	name := strings.TrimPrefix(key, "site.")
	return slices.ContainsFunc(owners, func(owner string) bool {
		return owner != v.app.Components[component].Name &&
			v.app.handsOn(PeerPort{Component: owner, Key: name}, text)
	})
}

// badSuffix finds a group directly behind a pattern that is none of its options.
func (t portText) badSuffix() (string, bool) {
	for i, part := range t.parts {
		if i > 0 && strings.HasPrefix(part, "{") {
			group, _, _ := strings.Cut(part, "}")
			return group + "}", true
		}
	}
	return "", false
}

// references finds values that refer back to themselves, and values that would grow beyond the limits.
func (v *validation) references() {
	v.referencesOf(-1, v.app.Config)
	for i, c := range v.app.Components {
		if !maps.Equal(c.Config, v.app.Config) {
			v.referencesOf(i, c.Config)
		}
	}
}

func (v *validation) referencesOf(component int, config map[string]string) {
	var referring []string
	for key, text := range config {
		if strings.Contains(text, sitePath) || strings.Contains(text, "${site.") {
			referring = append(referring, key)
		}
	}
	if len(referring) == 0 {
		return
	}
	slices.Sort(referring)
	next := func(key string) []string {
		var to []string
		for _, name := range Placeholders(config[key]) {
			if dict, rest, ok := siteKey(name); ok {
				to = append(to, "site."+dict+"."+rest)
			}
		}
		return to
	}
	circular := map[string]bool{}
	for _, cycle := range cycles(referring, next) {
		first := slices.Min(cycle)
		for _, key := range cycle {
			circular[key] = true
		}
		v.bad(v.valuePlace(component, first), strings.Join(rotate(cycle, first), " refers to "), "a value in the end",
			"")
	}
	sizes := sizing{config: config, next: next, circular: circular, known: map[string]size{}}
	for _, key := range referring {
		// reported there
		inner := slices.ContainsFunc(next(key), func(to string) bool { return sizes.of(to).tooLarge() })
		if sizes.of(key).tooLarge() && !inner {
			v.bad(v.valuePlace(component, key), "a value that grows beyond bounds",
				"at most 1 MiB, "+strconv.Itoa(deepest)+" references deep", "")
		}
	}
}

// size is the size of a value after its expansion.
type size struct{ bytes, deep, lookups int }

func (s size) tooLarge() bool {
	return s.bytes > mostExpanded || s.deep > deepest || s.lookups > mostLookups
}

// sizing measures values that refer to each other, each once.
type sizing struct {
	config   map[string]string
	next     func(string) []string
	circular map[string]bool // measured as nothing
	known    map[string]size
}

func (z sizing) of(key string) size {
	if s, ok := z.known[key]; ok || z.circular[key] {
		return s
	}
	s := size{bytes: len(z.config[key])}
	z.known[key] = s
	for _, to := range z.next(key) {
		refers := strings.Count(z.config[key], sitePathOf(to)) + strings.Count(z.config[key], "${"+to+"}")
		inner := z.of(to)
		s.bytes = min(s.bytes+refers*inner.bytes, 2*mostExpanded)
		s.lookups = min(s.lookups+refers*(1+inner.lookups), 2*mostLookups)
		s.deep = max(s.deep, inner.deep+1)
	}
	z.known[key] = s
	return s
}

// sitePathOf turns `site.<dict>.<key>` into the end of its reference, `@//site/<dict>/<key>}`.
func sitePathOf(name string) string {
	dict, key, _ := siteKey(name)
	return sitePath + dict + "/" + key + "}"
}

func (v *validation) valuePlace(component int, key string) Place {
	if component < 0 {
		return v.app.place("config", key)
	}
	return v.keyPlace(component, key)
}
