package slider

import (
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Slider's credentials name the secrets that an app needs: the path of a provider, and its aliases. If muster can read
// the provider, each alias gets its reference. Of Hadoop's own providers (`jceks://…`) only the names are known:
// muster.secret.NAME must name the value.

const secretPrefix = "muster.secret."

// credential is one alias of one provider.
type credential struct {
	provider, alias string
	at              appdef.Place
}

// secrets reads the section credentials. Unreadable entries are kept.
func (t *conftree) secrets(l *loading) []credential {
	section, ok := t.root.object("credentials")
	if !ok || len(section.members) == 0 {
		return nil
	}
	if t.name != "appConfig" { // Slider asks for those of appConfig alone
		l.app.Kept[t.name+"#"+section.pointer] = section.value()
		section.warn("credentials in "+t.name, "them in appConfig", "they have no effect here")
		return nil
	}
	var found []credential
	for _, m := range section.members {
		for _, alias := range section.list(m.name) {
			if !alias.scalar() || alias.node.text == "" {
				alias.bad(string(alias.kind), "the name of a secret", "")
				continue
			}
			found = append(found, credential{provider: m.name, alias: alias.node.text, at: alias.place()})
		}
		if _, readable := reference(m.name, ""); !readable {
			l.app.Kept[t.name+"#"+section.pointer+appdef.Pointer(m.name)] = m.value.value()
		}
	}
	return found
}

// reference is the location of an alias in a provider, in the form of muster.secret.*; false if muster cannot read the
// provider.
func reference(provider, alias string) (string, bool) {
	kind, at, _ := strings.Cut(provider, ":")
	switch kind {
	case "file":
		return "file:" + strings.TrimSuffix(at, "/") + "/" + alias, true
	case "env":
		return "env:" + at + variable(alias), true
	case "keyring":
		return "keyring:" + at + alias, true
	}
	return "", false
}

// variable is an alias as the name of a variable: upper case, with _ for all but letters and digits.
func variable(alias string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, alias)
	if name != "" && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// credentials turns the section into secrets of every component. A written muster.secret.NAME wins.
func (l *loading) credentials(src appdef.Sources) {
	owner := map[string]credential{}
	for _, c := range l.appConfig.credentials {
		name := variable(c.alias)
		if first, taken := owner[name]; taken {
			l.found = append(l.found, c.at.Warning("a second secret "+name, "one for each name",
				appdef.Quote(first.alias)+" of "+first.provider+" is the first, which counts"))
			continue
		}
		owner[name] = c
		l.credential(src, c, secretPrefix+name)
	}
}

func (l *loading) credential(src appdef.Sources, c credential, key string) {
	text, readable := reference(c.provider, c.alias)
	lacks := l.lacks(src, key)
	switch {
	case len(lacks) == 0:
	case !readable:
		l.found = append(l.found, c.at.Warning("the secret "+appdef.Quote(c.alias)+" of "+appdef.Quote(c.provider),
			key+", a reference: file:PATH, env:NAME or keyring:NAME", "without it no secret reaches "+
				strings.Join(lacks, ", ")+": this provider is kept and not read"))
	case strings.HasPrefix(text, "file:") && (strings.ContainsAny(c.alias, "/\\\x00") || c.alias == "." ||
		c.alias == ".."):
		l.found = append(l.found, c.at.Problem(appdef.Quote(c.alias),
			"the name of a file in "+strings.TrimPrefix(c.provider, "file:"), ""))
	default:
		// the weakest level but resources', where the key is not written
		src.Config[key] = appdef.Value{Text: text, Place: c.at}
	}
}

// lacks lists the components for which a key is written at no level.
func (l *loading) lacks(src appdef.Sources, key string) []string {
	var names []string
	for _, c := range l.app.Components {
		if c.Category != "CLIENT" && !written(src, c.Name, key) {
			names = append(names, c.Name)
		}
	}
	return names
}
