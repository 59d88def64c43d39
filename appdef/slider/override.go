package slider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// override applies what the command line changes, before anything is validated: --set, then --instances; within each
// the last wins.
func (l *loading) override() {
	for _, arg := range l.options.Set {
		c, ok, found := appdef.ParseSet(arg, l.app.ComponentNames())
		l.found = append(l.found, found...)
		if ok {
			l.unread(c)
			l.change(c)
		}
	}
	for _, arg := range l.options.Instances {
		changes, found := appdef.ParseInstances(arg, l.app.ComponentNames())
		l.found = append(l.found, found...)
		for _, c := range changes {
			l.change(c)
		}
	}
}

func (l *loading) change(c appdef.Change) {
	if c.Client {
		l.app.Vars[c.Key] = c.Text
		return
	}
	into, other := l.appConfig, l.resources
	if c.Resource {
		into, other = l.resources, l.appConfig
	}
	into.set(c.Component, c.Key, c.Value)
	if c.Ours() {
		other.unset(c.Component, c.Key) // the command line's value is the only one at its level
	}
}

// siteKeys are the keys of the TensorFlow package that muster itself reads.
var siteKeys = []string{
	"site.global.user.checkpoint.dir", "site.global.user.checkpoint.prefix", "site.global.user.data.dir",
	"site.global.user.scripts.entry",
}

// unread warns of a key of the command line that the definition neither has nor reads: most likely it is misspelt. Of
// muster's own keys and those of resources other checks do so. A dictionary is handed over whole, so that any key of it
// may have a reader.
func (l *loading) unread(c appdef.Change) {
	if c.Client || c.Resource || c.Ours() {
		return
	}
	const want = "a key of the definition"
	if component, key, dotted := strings.Cut(c.Key, "."); dotted && !l.appConfig.has(c.Key) &&
		slices.Contains(l.app.ComponentNames(), component) {
		l.found = append(l.found, c.Warning("the key "+appdef.Quote(c.Key)+", which nothing reads", want,
			"did you mean --set "+component+":"+key+"=…?"))
		return
	}
	if l.appConfig.has(c.Key) || slices.Contains(siteKeys, c.Key) || l.mentions(c.Key) {
		return
	}
	known := append(slices.Clone(siteKeys), l.appConfig.names()...)
	for _, k := range configTable {
		prefix, many := strings.CutSuffix(k.Name, "*")
		if k.Name == c.Key || many && prefix != "site." && strings.HasPrefix(c.Key, prefix) {
			return
		}
		if prefix != "site." {
			known = append(known, k.Name)
		}
	}
	hint := appdef.DidYouMean(c.Key, known)
	if hint == "" && l.mayRead(c.Key) {
		return
	}
	l.found = append(l.found, c.Warning("the key "+appdef.Quote(c.Key)+", which nothing reads", want, hint))
}

// mayRead tells of a key that resembles no other whether something may read it: a package's script, or a dictionary's
// file of configuration.
func (l *loading) mayRead(key string) bool {
	dict, _, _ := strings.Cut(strings.TrimPrefix(key, "site."), ".")
	return strings.HasPrefix(key, "site.") && dict != "global" ||
		slices.ContainsFunc(l.app.Components, func(c appdef.Component) bool {
			return c.CommandScript != nil || len(c.Commands) > 0
		})
}

// mentions tells whether a text of the definition has a key's placeholder.
func (l *loading) mentions(key string) bool {
	texts, err := json.Marshal(l.app) // metainfo's; appConfig is not in it yet
	if err != nil {
		return true
	}
	in := func(text string) bool {
		return strings.Contains(text, "${"+key+"}") || strings.Contains(text, "@//"+strings.Replace(key, ".", "/", 2))
	}
	sections := append(slices.Collect(maps.Values(l.appConfig.components)), l.appConfig.global)
	return in(string(texts)) || slices.ContainsFunc(sections, func(s appdef.Section) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(s)), func(v appdef.Value) bool { return in(v.Text) })
	})
}
