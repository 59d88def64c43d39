package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// command is the process's argument vector: muster.command, else metainfo's commands, both run by
// the shell; else START of the commandScript, or the framework's built-in command where that is
// asked for or the package has no such script. An image's entrypoint comes before it.
func (b *builder) command(s *Script) []string {
	if b.component.Limits.Image == "" {
		return b.times(b.ownCommand(s))
	}
	if c := b.component; c.Settings.Command == "" && c.CommandScript == nil && s == nil {
		own := b.inImage([]string{})
		all := b.times(own)
		b.verbatim += len(all) - len(own) // what starts them comes first, and has nothing to fill in
		return all
	}
	return b.inImage(b.times(b.ownCommand(s)))
}

func (b *builder) ownCommand(script *Script) []string {
	s := b.component.Settings
	switch {
	case b.serves():
		return []string{b.python(), "-c", tfServer}
	case script != nil && script.Has(CommandStart):
		return script.Argv(CommandStart, b.req.log(), b.req.root())
	case s.Command != "":
		text := b.shellText("muster.command", s.Command)
		return b.underMPI([]string{b.shell(), "-c", text}, text)
	case b.app.Settings.Framework == "tensorflow" && b.component.CommandScript != nil:
		return b.tensorflow()
	}
	got := "nothing that says what to run"
	if b.component.CommandScript != nil {
		got = "commandScript " + appdef.Quote(b.component.CommandScript.Script)
	}
	b.problem(b.at("command_script"), got, "muster.command",
		"set muster.command for component "+b.component.Name+" in appConfig")
	return []string{}
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

// shellText resolves a text that a shell will read. What is left unresolved may be the shell's own
// variable; a reference into the configuration and a Hadoop client's name without a value cannot be.
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

// withShell keeps a shell's own ${WORK} and ${LOG} apart from ours: `${WORK-}` means the same.
func withShell(vars map[string]string) map[string]string {
	out := map[string]string{"WORK": "${WORK-}", "LOG": "${LOG-}"}
	maps.Copy(out, vars)
	return out
}

// text resolves a value that no shell will read, so that nothing may be left over but what the
// start fills in. A client's name without a value is empty.
func (b *builder) text(key, text string) string {
	out, unresolved, empty := b.scope.ExpandLax(text)
	for _, name := range unresolved {
		if b.isHost(name) {
			continue
		}
		b.problem(b.key(key), "${"+name+"}", "a placeholder that is known", "")
	}
	for _, name := range empty {
		b.warn(b.key(key), "${"+name+"}, which has no value here", "a value for "+name,
			"it is empty; give --set "+name+"=VALUE")
	}
	return out
}

// isHost tells whether the name is `C_HOST` of a component, which the start knows.
func (b *builder) isHost(name string) bool {
	base, ok := strings.CutSuffix(name, "_HOST")
	return ok && slices.ContainsFunc(b.app.Components, func(c appdef.Component) bool {
		return c.Name == base || strings.ToUpper(c.Name) == base
	})
}
