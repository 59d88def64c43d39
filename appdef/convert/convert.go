package convert

import (
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/appdef/slider"
)

// The systems whose words an App can be written in.
const (
	Slider     = "slider"
	paiFormat  = "pai"
	hboxFormat = "hbox"
)

// Targets lists them.
func Targets() []string { return []string{Slider, paiFormat, hboxFormat} }

// Conversion is the answer of muster convert --json.
type Conversion struct {
	Version     int               `json:"version"`
	Dialect     string            `json:"dialect"`
	Files       map[string]string `json:"files"` // by name; of hbox one, called command
	Unsupported []string          `json:"unsupported"`
}

// To writes an App for one of Targets. files are those of its package.
func To(target string, app appdef.App, files fs.FS) Conversion {
	out := Conversion{Version: 1, Dialect: target, Files: map[string]string{}, Unsupported: []string{}}
	app = withoutValues(app)
	switch target {
	case paiFormat:
		text, unsupported := pai.Write(app)
		out.Files[pai.JobFile], out.Unsupported = string(text), append(out.Unsupported, unsupported...)
	case hboxFormat:
		args, unsupported := hbox.Write(app)
		out.Files["command"] = commandLine(append([]string{"hbox-submit"}, args...))
		out.Unsupported = append(out.Unsupported, unsupported...)
	default:
		documents, unsupported := slider.Write(app)
		for name, text := range documents {
			out.Files[name] = string(text)
		}
		out.Unsupported = append(out.Unsupported, unsupported...)
	}
	for _, name := range slices.Sorted(maps.Keys(app.JobSecrets)) {
		out.Unsupported = append(out.Unsupported, "the value of the secret "+name+": it is in no file; "+
			"agents take it from their variable "+variableOf(name))
	}
	if entries, err := fs.ReadDir(files, "package"); err == nil && len(entries) > 0 {
		out.Unsupported = append(out.Unsupported, "the files of package/: no definition holds them, take them along")
	}
	return out
}

// withoutValues is the app whose own secrets are variables of the agents: what is written has no place for the values.
func withoutValues(app appdef.App) appdef.App {
	refer := func(given map[string]string) map[string]string {
		given = maps.Clone(given)
		for key, ref := range given {
			if name, ok := strings.CutPrefix(ref, appdef.JobSecret); ok {
				if _, ours := app.JobSecrets[name]; ours {
					given[key] = "env:" + variableOf(name)
				}
			}
		}
		return given
	}
	app.Config, app.Resources = refer(app.Config), refer(app.Resources)
	app.Components = slices.Clone(app.Components)
	for i := range app.Components {
		c := &app.Components[i]
		c.Config, c.Resources, c.Settings.Secrets = refer(c.Config), refer(c.Resources), refer(c.Settings.Secrets)
		c.Limits.ImageAuth = refer(map[string]string{"": c.Limits.ImageAuth})[""]
	}
	return app
}

// variableOf is the agents' variable of a job's own secret.
func variableOf(name string) string {
	return "MUSTER_SECRET_" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// commandLine is a command of hbox-submit for a shell: each option with its value on a line, the command to run on the
// last.
func commandLine(args []string) string {
	const next = " \\\n  "
	lines, rest := []string{args[0]}, args[1:]
	for len(rest) > 1 && strings.HasPrefix(rest[0], "-") && rest[0] != "--" {
		lines, rest = append(lines, shellWords(rest[:2])), rest[2:]
	}
	if len(rest) > 0 {
		lines = append(lines, shellWords(rest))
	}
	return strings.Join(lines, next) + "\n"
}

func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}

const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+#"

// shellWord quotes a word that a shell would not take as it is.
func shellWord(word string) string {
	if word != "" && strings.Trim(word, plainBytes) == "" && word[0] != '#' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
