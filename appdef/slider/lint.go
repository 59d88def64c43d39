package slider

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Lint advises the author of a package beyond the problems that Load reports: what will surprise users of the package,
// and what nobody needs. Everything is a warning. app is the result of Load for fsys.
func Lint(fsys fs.FS, app appdef.App) appdef.Problems {
	l := linting{fsys: fsys, app: &app}
	l.links()
	l.files()
	l.scripts()
	l.exports()
	l.ports()
	return l.found.Sort()
}

// Fixes lists the files of a package that Fix would change, by name.
func Fixes(fsys fs.FS) []Fixed {
	var fixes []Fixed
	l := linting{fsys: fsys}
	l.walk(func(name string, _ fs.FileInfo, data []byte) {
		if f := Fix(name, data); len(f.Changes) > 0 {
			fixes = append(fixes, f)
		}
	})
	return fixes
}

// linting is one run of Lint.
type linting struct {
	fsys  fs.FS
	app   *appdef.App
	found appdef.Problems
}

func (l *linting) advise(at appdef.Place, got, want, hint string) {
	l.found = append(l.found, at.Warning(got, want, hint))
}

// walk visits the documents, scripts and templates: what the author writes, not what the app brings. It stops after a
// thousand files, and leaves out unreadable ones and ones larger than a document may be.
func (l *linting) walk(visit func(name string, info fs.FileInfo, data []byte)) {
	const most = 1000
	names := slices.Concat([]string{"metainfo.json", "metainfo.xml"}, namesOf("appConfig"), namesOf("resources"))
	for _, dir := range []string{"package/scripts", "package/templates"} {
		// what cannot be read gets no advice
		_ = fs.WalkDir(l.fsys, dir, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return fs.SkipDir
			case len(names) > most:
				return fs.SkipAll
			case d.Type().IsRegular():
				names = append(names, name)
			}
			return nil
		})
	}
	for _, name := range names {
		info, err := fs.Stat(l.fsys, name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if data, err := readSmall(l.fsys, name); err == nil {
			visit(name, info, data)
		}
	}
}

// links advises on links outside package/ that lead out of the package; Load reports those inside.
func (l *linting) links() {
	walkLinks(l.fsys, ".", func(name string) bool {
		if got := badLink(l.fsys, name); got != "" && name != "package" && !strings.HasPrefix(name, "package/") {
			l.advise(appdef.Place{File: name}, got, "one that stays inside the package",
				"no agent takes it, and no build")
		}
		return len(l.found) < mostLinks
	})
}

// files advises on how files are written.
func (l *linting) files() {
	l.walk(func(name string, info fs.FileInfo, data []byte) {
		at := appdef.Place{File: name, Line: 1}
		if len(trimBOM(data)) < len(data) {
			l.advise(at, "a byte order mark", "UTF-8 without one", "")
		}
		if n := bytes.Index(data, []byte("\r\n")); n >= 0 {
			l.advise(appdef.Place{File: name, Line: line(data, n)}, "CRLF at the ends of lines", "LF",
				"a shell reads the CR as part of a word")
		}
		if path.Ext(name) == ".json" {
			l.document(name, data)
		}
		if bytes.HasPrefix(data, []byte("#!")) && path.Ext(name) == ".sh" && info.Mode().Perm()&0o100 == 0 {
			l.advise(at, fmt.Sprintf("a script of mode %#o", info.Mode().Perm()), "one that can be executed",
				"chmod +x "+name)
		}
		if strings.HasPrefix(name, "package/templates/") {
			l.template(name, data)
		}
	})
}

// document advises on a JSON document: how it is indented, and values that are no texts.
func (l *linting) document(name string, data []byte) {
	indent := map[string]int{} // tab or blank → the first line
	number := 0
	for text := range bytes.Lines(data) {
		number++
		for _, kind := range []string{"\t", " "} {
			if _, seen := indent[kind]; !seen && bytes.HasPrefix(text, []byte(kind)) && len(bytes.TrimSpace(text)) > 0 {
				indent[kind] = number
			}
		}
	}
	if tab, ok := indent["\t"]; ok && len(indent) == 2 {
		l.advise(appdef.Place{File: name, Line: tab}, "tabs and blanks before lines", "one of them", "")
	}
	texts := 0
	for _, change := range Fix(name, data).Changes {
		if strings.HasSuffix(change, " is a text") {
			texts++
		}
	}
	if texts > 0 {
		l.advise(appdef.Place{File: name}, fmt.Sprintf("values that are no texts: %d", texts), `texts, "256" for 256`,
			"Slider has texts only; --fix writes them")
	}
}

// statement is the word of a `{% … %}` in a template.
var statement = regexp.MustCompile(`\{%[-+]?\s*(\w*)`)

var (
	// tag matches a `{% word … %}`, and before it whatever may have one in it that counts for nothing.
	tag = regexp.MustCompile(`(?s)\{#.*?#\}|\{\{.*?\}\}|\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}|` +
		`\{%[-+]?\s*(\w*)(.*?)%\}`)
	blocks = []string{"autoescape", "block", "call", "filter", "for", "if", "macro", "set", "with"}
)

// blocks advises on a block of a template that has no end, and on an end or an else without a block.
func (l *linting) blocks(name string, data []byte) {
	type block struct {
		word string
		line int
	}
	var open []block
	for _, found := range tag.FindAllSubmatchIndex(data, -1) {
		if found[2] < 0 {
			continue
		}
		word, rest := string(data[found[2]:found[3]]), string(data[found[4]:found[5]])
		last := block{}
		if len(open) > 0 {
			last = open[len(open)-1]
		}
		at := appdef.Place{File: name, Line: line(data, found[0])}
		ended, isEnd := strings.CutPrefix(word, "end")
		isEnd = isEnd && slices.Contains(blocks, ended)
		fits := isEnd && ended == last.word || last.word == "if" && (word == "elif" || word == "else") ||
			last.word == "for" && word == "else"
		switch {
		case slices.Contains(blocks, word):
			if word != "set" || !strings.Contains(rest, "=") { // {% set a = b %} has no end
				open = append(open, block{word, at.Line})
			}
		case isEnd && fits:
			open = open[:len(open)-1]
		case !fits && (isEnd || word == "elif" || word == "else"):
			want := "a block that it belongs to"
			if last.word != "" {
				want = "{% end" + last.word + " %} of line " + strconv.Itoa(last.line) + " before it"
			}
			l.advise(at, "{% "+word+" %}", want, "the script that uses the template fails")
			return
		}
	}
	if len(open) > 0 {
		last := open[len(open)-1]
		l.advise(appdef.Place{File: name, Line: last.line}, "{% "+last.word+" %} without an end",
			"{% end"+last.word+" %}", "the script that uses the template fails")
	}
}

// template advises on constructs that the library's own templates lack: with them the host needs jinja2.
func (l *linting) template(name string, data []byte) {
	if path.Ext(name) == ".j2" { // others may be in another language
		l.blocks(name, data)
	}
	subset := []string{"if", "elif", "else", "endif", "for", "endfor"}
	for _, at := range statement.FindAllSubmatchIndex(data, -1) {
		if word := string(data[at[2]:at[3]]); !slices.Contains(subset, word) {
			l.advise(appdef.Place{File: name, Line: line(data, at[0])},
				"{% "+word+" %}", "{% if %} and {% for %}",
				"without jinja2 on the host there is no more than these")
			return // one is enough to need it
		}
	}
}

// scripts advises on commandScripts that are missing although nothing runs them.
func (l *linting) scripts() {
	for i, c := range l.app.Components {
		if c.CommandScript != nil && c.CommandScript.Missing && c.Settings.CommandFrom != "commandScript" {
			at := l.app.Places[appdef.Pointer("components", strconv.Itoa(i), "command_script", "script")]
			l.advise(at, "no file package/"+c.CommandScript.Script, "the script, or no commandScript",
				c.Settings.CommandFrom+" is what START runs")
		}
	}
}

// exports advises on exports that no component publishes.
func (l *linting) exports() {
	used := map[appdef.ExportRef]bool{}
	for _, c := range l.app.Components {
		for _, ref := range slices.Concat(c.CompExports, c.AppExports) {
			used[ref] = true
		}
	}
	for g, group := range l.app.ExportGroups {
		for e, export := range group.Exports {
			ref := appdef.ExportRef{Group: group.Name, Name: export.Name}
			if !used[ref] {
				at := l.app.Places[appdef.Pointer("export_groups", strconv.Itoa(g), "exports", strconv.Itoa(e), "name")]
				l.advise(at, "the export "+ref.String()+", which no component has",
					"it in a component's compExports or appExports", "nobody publishes it")
			}
		}
	}
}

// ports advises on claimed ports that nothing tells of: no export, and no configuration of another component.
func (l *linting) ports() {
	told := map[string]bool{}
	tell := func(template string) {
		for _, key := range namedKeys(template) {
			told[key] = true
		}
	}
	for _, group := range l.app.ExportGroups {
		for _, export := range group.Exports {
			tell(export.Value)
		}
	}
	for _, c := range l.app.Components {
		for _, export := range c.ComponentExports {
			tell(export.Value)
		}
	}
	silent := map[appdef.Place]string{} // a global value is that of several components
	for i, c := range l.app.Components {
		for _, need := range l.app.PortNeeds(c.Name) {
			at, ok := l.configPlace(i, "site."+need.Key)
			if ok && !told[need.Key] && !l.readElsewhere(i, need.Key, at) {
				silent[at] = need.Key
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(silent), func(x, y appdef.Place) int {
		return strings.Compare(x.String(), y.String())
	}) {
		l.advise(at, "a port that no export tells of", "an export with ${site."+silent[at]+"}", "others cannot find it")
	}
}

// namedKeys are the keys of the configuration, DICTIONARY.KEY, that a text names.
func namedKeys(text string) []string {
	var keys []string
	for _, name := range appdef.Placeholders(text) {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "@//site/"), "site.")
		keys = append(keys, strings.ReplaceAll(name, "/", "."))
	}
	return keys
}

// readElsewhere tells whether another component reads the port of component i: by a value of its own under the same
// key, or in another value. One global value under the key shows nothing, for every component has it.
func (l *linting) readElsewhere(i int, key string, at appdef.Place) bool {
	for j, other := range l.app.Components {
		reads := slices.ContainsFunc(l.app.PeerPorts(other.Name), func(p appdef.PeerPort) bool {
			return j != i && p.Component == l.app.Components[i].Name && p.Key == key
		})
		if !reads {
			continue
		}
		if own, _ := l.configPlace(j, "site."+key); own != at {
			return true
		}
		for _, value := range other.Config {
			if slices.Contains(namedKeys(value), key) {
				return true
			}
		}
	}
	return false
}

// configPlace finds where a value of a component was written.
func (l *linting) configPlace(i int, key string) (appdef.Place, bool) {
	for _, pointer := range []string{
		appdef.Pointer("components", strconv.Itoa(i), "config", key),
		appdef.Pointer("config", key),
	} {
		if at, ok := l.app.Places[pointer]; ok {
			return at, true
		}
	}
	return appdef.Place{}, false
}
