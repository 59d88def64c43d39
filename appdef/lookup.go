package appdef

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Component finds a component by its exact name; nil when there is none.
func (a *App) Component(name string) *Component {
	if i := slices.IndexFunc(a.Components, func(c Component) bool { return c.Name == name }); i >= 0 {
		return &a.Components[i]
	}
	return nil
}

// ComponentNames lists the components in the order of the definition.
func (a *App) ComponentNames() []string {
	names := make([]string, len(a.Components))
	for i, c := range a.Components {
		names[i] = c.Name
	}
	return names
}

// Declared are the dictionaries that a component receives even if they have no value: global, those of configFiles, and
// those of system_configs. An empty name asks for those of all components.
func (a *App) Declared(component string) map[string]bool {
	dicts := map[string]bool{"global": true}
	for _, f := range a.ConfigFiles {
		dicts[f.Dictionary] = true
	}
	config := a.Config
	for _, c := range a.Components {
		if component != "" && c.Name != component {
			continue
		}
		for _, f := range c.ConfigFiles {
			dicts[f.Dictionary] = true
		}
		if c.Name == component {
			config = c.Config
		}
	}
	for dict := range strings.SplitSeq(config["system_configs"], ",") {
		dicts[strings.TrimSpace(dict)] = true
	}
	delete(dicts, "") // a name that is missing is reported where it is read
	return dicts
}

// scheme begins a URL.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// InPackage tells whether a file of application.resources is one of the package, not a URL or an absolute path.
func InPackage(file string) bool {
	return !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "${") && !scheme.MatchString(file)
}

// ResourceName is the name in app/resources of a file of application.resources: the last element of its path, decoded
// in a URL of the web. "": it names no file there.
func ResourceName(file string) string {
	if InPackage(file) {
		return path.Base(file) // # and ? are letters of a name
	}
	file, _, _ = strings.Cut(file, "#")
	file, _, _ = strings.Cut(file, "?")
	name := file[strings.LastIndexAny(file, "/:")+1:]
	if strings.HasPrefix(file, "http:") || strings.HasPrefix(file, "https:") {
		decoded, err := url.PathUnescape(name)
		if err != nil || strings.Contains(decoded, "/") || strings.ContainsFunc(decoded, unicode.IsControl) {
			return ""
		}
		name = decoded
	}
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// Export finds one export.
func (a *App) Export(ref ExportRef) (Export, bool) {
	for _, group := range a.ExportGroups {
		if group.Name != ref.Group {
			continue
		}
		for _, export := range group.Exports {
			if export.Name == ref.Name {
				return export, true
			}
		}
	}
	return Export{}, false
}

// StartCommand is the entry of metainfo's commands that START runs.
func (c Component) StartCommand() (Command, bool) {
	if i := slices.IndexFunc(c.Commands, func(k Command) bool { return k.Name == "START" }); i >= 0 {
		return c.Commands[i], true
	}
	return Command{}, false
}

// Builtin tells whether the app's framework has a built-in command, which START runs if the package has no script.
func (a *App) Builtin() bool { return a.Settings.Framework == "tensorflow" }

// String prints the reference as metainfo writes it.
func (r ExportRef) String() string {
	if r == (ExportRef{}) {
		return ""
	}
	return r.Group + "-" + r.Name
}

// ParseExportRef reads `group-export`. Both names may have dashes: the split is at the first dash
// that yields a known export, else at the first that yields a known group, else at the first.
func (a *App) ParseExportRef(text string) ExportRef {
	var known *ExportRef
	for at := range len(text) {
		if text[at] != '-' {
			continue
		}
		ref := ExportRef{Group: text[:at], Name: text[at+1:]}
		if _, ok := a.Export(ref); ok {
			return ref
		}
		if known == nil && slices.ContainsFunc(a.ExportGroups, func(g ExportGroup) bool {
			return g.Name == ref.Group
		}) {
			known = &ref
		}
	}
	if known != nil {
		return *known
	}
	group, name, _ := strings.Cut(text, "-")
	return ExportRef{Group: group, Name: name}
}

// isHostPort tells whether an export's template is the address of its component: `${C_HOST}:PORT`
// where PORT is a number or one placeholder. C is any component, in exact or upper case.
func isHostPort(template string) bool {
	before, host, rest, found := cutPlaceholder(strings.TrimSpace(template))
	if !found || before != "" || !strings.HasSuffix(host.name, hostSuffix) {
		return false
	}
	port, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return false
	}
	if _, err := ParseInt(port); err == nil {
		return true
	}
	before, ph, after, found := cutPlaceholder(port)
	return found && before == "" && after == "" && ph.refers()
}

// Counts are the instances of each component.
func (a *App) Counts() map[string]int {
	counts := make(map[string]int, len(a.Components))
	for _, c := range a.Components {
		counts[c.Name] = c.Instances
	}
	return counts
}

// WithCounts is the App with other counts; components that counts does not name keep theirs. Defaults that depend on
// counts are set again.
func (a App) WithCounts(counts map[string]int) App {
	a.Components = slices.Clone(a.Components)
	for i := range a.Components {
		if n, ok := counts[a.Components[i].Name]; ok {
			a.Components[i].Instances = n
		}
	}
	a.defaultScopes()
	return a
}
