package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// text resolves a value that no shell will read: all placeholders must be known, except those that the start fills in.
// A client's name without a value is empty.
func (b *builder) text(key, text string) string {
	out, unresolved, empty := b.scope.ExpandLax(text)
	for _, name := range unresolved {
		if b.isHost(name) {
			continue
		}
		b.problem(b.key(key), "${"+name+"}, which has no value here", "a value for "+name, b.remedy(name))
	}
	for _, name := range empty {
		b.warn(b.key(key), "${"+name+"}, which has no value here", "a value for "+name,
			"it is empty; give --set "+name+"=VALUE")
	}
	return out
}

// remedy says how a placeholder gets a value.
func (b *builder) remedy(name string) string {
	switch {
	case strings.HasPrefix(name, "@//site/") || strings.HasPrefix(name, "site."):
		return "set it in appConfig"
	case appdef.IsVariable(name):
		return "give --set " + name + "=VALUE"
	}
	return "muster has none of that name"
}

// shellText resolves a text that a shell will read. An unresolved name may be the shell's own variable. A reference
// into the configuration and a Hadoop client's name without a value cannot be one: they are problems.
func (b *builder) shellText(key, text string) string {
	if key == "muster.command" && b.literal() {
		return text
	}
	scope := b.scope
	scope.Vars = withShell(scope.Vars)
	b.eachAtHome(&scope)
	out, unresolved := scope.Expand(text)
	for _, name := range unresolved {
		switch {
		case strings.HasPrefix(name, "@//site/") || strings.HasPrefix(name, "site."):
			b.problem(b.key(key), "${"+name+"}", "a key that the configuration has", "")
		case slices.Contains(appdef.ClientNames(), name) && b.req.Inherited[name] == "":
			b.problem(b.key(key), "${"+name+"}, which has no value here", "a value for "+name,
				"give --set "+name+"=VALUE")
		}
	}
	return out
}

// isHost tells whether the name is `C_HOST` of a component, which the start fills in.
func (b *builder) isHost(name string) bool {
	base, ok := strings.CutSuffix(name, "_HOST")
	return ok && slices.ContainsFunc(b.app.Components, func(c appdef.Component) bool {
		return c.Name == base || strings.ToUpper(c.Name) == base
	})
}

// withShell keeps a shell's own ${WORK} and ${LOG} apart from the plan's: `${WORK-}` means the same to a shell.
func withShell(vars map[string]string) map[string]string {
	out := map[string]string{"WORK": "${WORK-}", "LOG": "${LOG-}"}
	maps.Copy(out, vars)
	return out
}

// site is a value of the dictionary global, resolved; empty when it is not set.
func (b *builder) site(key string) string {
	name := "site.global." + key
	if b.component.Config[name] == "" {
		return ""
	}
	out, unresolved := b.scope.Expand(b.component.Config[name])
	for _, missing := range unresolved {
		if !b.isHost(missing) {
			b.problem(b.key(name), "${"+missing+"}, which has no value here", "a value for "+missing,
				"give --set "+missing+"=VALUE, or --set "+name+"=…")
		}
	}
	return out
}

func (b *builder) python() string {
	if p := b.component.Settings.Python; p != "" {
		return b.text("muster.python", p)
	}
	return "python3"
}

func (b *builder) shell() string {
	switch {
	case b.req.Image != nil && !b.req.Image.Bash:
		return "sh"
	case b.req.Image == nil && b.req.Shell != "" && b.component.Limits.Image == "":
		return b.req.Shell
	}
	return "bash"
}

// literal tells whether commands and variables are passed on unchanged: PAI has no placeholders, and `${USER}` or
// `${ps_HOST}` in a job file belongs to its shell.
func (b *builder) literal() bool { return b.app.Dialect == "pai" }

// defaultFS is the value of ${NN_URI}: the definition's own, else the caller's.
func (b *builder) defaultFS() string {
	uri, _ := b.scope.Lookup("NN_URI")
	return uri
}

// location is a path or URL of data. A path without a scheme is in the default filesystem.
func (b *builder) location(key, written string) (string, bool) {
	written = strings.TrimSpace(written)
	text, ok := inFilesystem(b.defaultFS(), b.req.Allocation.User, written)
	if !ok {
		b.problem(b.key(key), appdef.Quote(written), "a path from / on, or a URL", "")
		return "", false
	}
	switch scheme := schemeOf(text); {
	case scheme != "" && !slices.Contains(Stores(), scheme):
		b.cannot(b.key(key), scheme+": in "+appdef.Quote(text), strings.Join(Stores(), ": or ")+": or a path",
			"there is no store for "+scheme+": here")
	case !strings.HasPrefix(pathOf(text), "/") && !strings.HasPrefix(pathOf(text), Work):
		b.problem(b.key(key), appdef.Quote(text), "a path from / on", "")
		return "", false
	}
	return text, true
}
