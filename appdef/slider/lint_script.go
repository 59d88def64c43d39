package slider

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Script is what a Python interpreter has read of one file of package/scripts.
type Script struct {
	Name      string // package/scripts/…
	Text      string
	Faults    []ScriptFault
	Class     *Class   // whose execute() the file calls; nil: none
	Unrun     *Name    // a class of commands in a file that surely runs none; nil: none
	Templates []Name   // that Template() names
	Programs  []string // last parts of the paths that texts begin with
	Reads     []Read
}

// ScriptFault is a fault at a line. Fatal: no Python 3 runs the file.
type ScriptFault struct {
	Line            int
	Got, Want, Hint string
	Fatal           bool
}

// Class is a class of commands: Slider's agent calls its methods. Whole: all its bases are known.
type Class struct {
	Name    string   `json:"name"`
	Line    int      `json:"line"`
	Methods []string `json:"methods"`
	Whole   bool     `json:"whole"`
}

// Read is a path of the command's JSON that a script reads, such as configurations, global, x, and the first line.
type Read struct {
	Path []string `json:"path"`
	Line int      `json:"line"`
}

// Name is a name and its line.
type Name struct {
	Name string `json:"name"`
	Line int    `json:"line"`
}

// LintScripts advises on the package's scripts, from what was read of them, and on the files that scripts and commands
// run. A file that no Python 3 can read, or that runs no command, is an error, the rest are warnings.
func LintScripts(fsys fs.FS, app appdef.App, scripts []Script) appdef.Problems {
	l := linting{fsys: fsys, app: &app}
	for _, s := range scripts {
		for _, f := range s.Faults {
			at := appdef.Place{File: s.Name, Line: f.Line}
			if f.Fatal {
				l.found = append(l.found, at.Problem(f.Got, f.Want, f.Hint))
			} else {
				l.advise(at, f.Got, f.Want, f.Hint)
			}
		}
		l.unrun(s)
		l.methods(s)
		l.templates(s)
	}
	l.programs(scripts)
	return l.found.Sort()
}

// unrun reports a commandScript that only defines its class: Python ends it with 0, so that each command succeeds and
// nothing was done.
func (l *linting) unrun(s Script) {
	runs := func(c appdef.Component) bool {
		return c.CommandScript != nil && c.Settings.CommandFrom == "commandScript" &&
			path.Join("package", c.CommandScript.Script) == s.Name
	}
	if s.Unrun == nil || !slices.ContainsFunc(l.app.Components, runs) {
		return
	}
	l.found = append(l.found, appdef.Place{File: s.Name, Line: s.Unrun.Line}.Problem(
		"the class "+s.Unrun.Name+", which nothing runs",
		"at the end of the file: if __name__ == \"__main__\": "+s.Unrun.Name+"().execute()",
		"each command would succeed and do nothing"))
}

// methods advises on a commandScript without methods for START or STATUS.
func (l *linting) methods(s Script) {
	if s.Class == nil || !s.Class.Whole {
		return
	}
	for _, c := range l.app.Components {
		if c.Category == "CLIENT" || c.CommandScript == nil || c.Settings.CommandFrom != "commandScript" ||
			path.Join("package", c.CommandScript.Script) != s.Name {
			continue
		}
		at := appdef.Place{File: s.Name, Line: s.Class.Line}
		got := "the class " + s.Class.Name + " without a method "
		if !slices.Contains(s.Class.Methods, "start") {
			l.advise(at, got+"start", "one", orElse(slip("start", s.Class.Methods), "START fails"))
		}
		if c.Settings.StatusInterval > 0 && !slices.Contains(s.Class.Methods, "status") {
			l.advise(at, got+"status", "one", orElse(slip("status", s.Class.Methods),
				"whether its processes live is all that is known of it"))
		}
	}
}

// slip is the hint about a name that was probably meant to be the wanted one.
func slip(want string, names []string) string {
	for _, name := range names {
		if near, ok := appdef.Nearest(name, []string{want}); ok {
			return "its " + name + " was meant to be " + near + "?"
		}
	}
	return ""
}

// templates advises on templates that the package lacks.
func (l *linting) templates(s Script) {
	for _, t := range s.Templates {
		name := path.Join("package/templates", t.Name)
		if path.IsAbs(t.Name) || !fs.ValidPath(name) || strings.ContainsAny(t.Name, "{}") {
			continue
		}
		if _, err := fs.Stat(l.fsys, name); err != nil {
			at := appdef.Place{File: s.Name, Line: t.Line}
			l.advise(at, "the template "+appdef.Quote(t.Name)+", which is not there",
				"a file of package/templates",
				appdef.DidYouMean(t.Name, l.names("package/templates")))
		}
	}
}

func (l *linting) names(dir string) []string {
	var names []string
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// programs advises on the files of package/files that a command or a script names: only that shows that they are run.
func (l *linting) programs(scripts []Script) {
	const most = 1000
	var said []string // all that may name one
	run := map[string]bool{}
	for _, c := range l.app.Components {
		said = append(said, c.Settings.Command)
		begins(c.Settings.Command, run)
		for _, command := range c.Commands {
			said = append(said, command.Exec)
			if command.Type == "SHELL" {
				begins(command.Exec, run)
			}
		}
	}
	for _, s := range scripts {
		said = append(said, s.Text)
		for _, name := range s.Programs {
			run[name] = true
		}
	}
	all := strings.Join(said, "\n")
	seen := 0
	// what cannot be read gets no advice
	_ = fs.WalkDir(l.fsys, "package/files", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if seen++; seen > most {
			return fs.SkipAll
		}
		if d.Type().IsRegular() && strings.Contains(all, path.Base(name)) {
			l.program(name, run[path.Base(name)])
		}
		return nil
	})
}

// program advises on one file; run: it is run by its own name, not read by an interpreter.
func (l *linting) program(name string, run bool) {
	info, err := fs.Stat(l.fsys, name)
	if err != nil {
		return
	}
	data, err := readSmall(l.fsys, name)
	if err != nil || !strings.HasPrefix(string(data), "#!") && path.Ext(name) != ".sh" {
		return
	}
	if n := strings.Index(string(data), "\r\n"); n >= 0 {
		l.advise(appdef.Place{File: name, Line: line(data, n)}, "CRLF at the ends of lines", "LF",
			"a shell reads the CR as part of a word")
	}
	if run && info.Mode().Perm()&0o100 == 0 {
		l.advise(appdef.Place{File: name, Line: 1}, fmt.Sprintf("a script of mode %#o", info.Mode().Perm()),
			"one that can be executed", "chmod +x "+name)
	}
}

// between matches what separates two commands of a shell, and before what a command may follow.
var (
	between = regexp.MustCompile(`&&|\|\||[;|&\n({]`)
	before  = regexp.MustCompile(`^(?:exec|nohup|setsid|then|do|else|if|while|!|time|[A-Za-z_]\w*=\S*)$`)
)

// begins notes the last part of the path of each command in a shell's text.
func begins(text string, run map[string]bool) {
	for _, command := range between.Split(strings.NewReplacer("${", "$", "}", "").Replace(text), -1) {
		for word := range strings.FieldsSeq(command) {
			if !before.MatchString(word) {
				run[path.Base(strings.Trim(word, `"'`))] = true
				break
			}
		}
	}
}
