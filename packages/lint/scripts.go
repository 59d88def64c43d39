package lint

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/packages/python2"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/shim/files"
)

//go:embed library.py
var libraryPython string

//go:embed scripts.py
var lintPython string

// How much is read of a package's scripts, and how long a Python may look at it.
const (
	mostScripts      = 1000
	mostScriptBytes  = 16 << 20
	mostScriptAnswer = 64 << 20
	scriptsPatience  = 10 * time.Second
)

// scriptQuestion is what scripts.py reads.
type scriptQuestion struct {
	Oldest   bool           `json:"oldest"`
	Hosts    bool           `json:"hosts"`    // the hosts' own python3 will run the scripts
	Programs []string       `json:"programs"` // folders of scripts that are run as programs
	Files    []scriptSource `json:"files"`
	Library  []scriptSource `json:"library"` // of packages/slidershell
}

type scriptSource struct {
	Name   string `json:"name"`
	Source []byte `json:"source"`
}

// scriptAnswer is what it says.
type scriptAnswer struct {
	Python string        `json:"python"`
	Files  []scriptFacts `json:"files"`
}

type scriptFacts struct {
	Name     string        `json:"name"`
	Refused  []scriptFault `json:"refused"`
	Oldest   *scriptFault  `json:"oldest"`
	Doubts   []scriptFault `json:"doubts"`
	More     *scriptsMore  `json:"more"`
	Class    *slider.Class `json:"class"`
	Unrun    *slider.Name  `json:"unrun"`
	Template []slider.Name `json:"templates"`
	Programs []string      `json:"programs"`
	Reads    []slider.Read `json:"reads"`
}

// scriptFault is a line and what Python 3 says of it, or would, and what 2to3 writes there, where that is known.
type scriptFault struct {
	Line    int    `json:"line"`
	Source  string `json:"source"`
	Failure string `json:"failure"`
	Write   string `json:"write"`
	Want    string `json:"want"`
	Hint    string `json:"hint"`
	ByHand  bool   `json:"by_hand"` // 2to3 leaves it, though it changes others like it
}

// scriptsMore counts the findings of a file that are left out.
type scriptsMore struct {
	Count int `json:"count"`
	Line  int `json:"line"` // of the first
}

// readScripts has a Python of this host read the package's scripts; nothing of the package runs. What cannot be looked
// at is a warning. known: all documents of the definition were read, so that it is known what runs the scripts.
func readScripts(ctx context.Context, pkg *packages.Package, app appdef.App, known bool) (
	[]slider.Script, appdef.Problems,
) {
	sources := pythonSources(pkg, "package/scripts")
	if len(sources) == 0 {
		return nil, nil
	}
	python, plain := interpreter(pkg, app)
	library, err := librarySources()
	var answer scriptAnswer
	if err == nil {
		answer, err = askPython(ctx, python, scriptQuestion{
			Oldest: plain, Hosts: known && plain && !slices.ContainsFunc(app.Components, ownModules),
			Programs: python2.Programs(pkg.FS), Files: sources, Library: library,
		})
	}
	if err != nil {
		at := appdef.Place{File: "package/scripts"}
		return nil, appdef.Problems{at.Warning(err.Error(), "a Python 3.8 or later", "the scripts were not looked at")}
	}
	var scripts []slider.Script
	for i, facts := range answer.Files {
		scripts = append(scripts, facts.script(answer.Python, string(sources[i].Source)))
	}
	return scripts, nil
}

// ownModules tells that a component's scripts may find modules that this host does not show.
func ownModules(c appdef.Component) bool {
	return c.Limits.Image != "" || c.Config["muster.env.PYTHONPATH"] != ""
}

// librarySources are those of the library that scripts import.
func librarySources() (sources []scriptSource, err error) {
	dir, err := os.MkdirTemp("", "muster-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := slidershell.LayOut(root, "library"); err != nil {
		return nil, err
	}
	return pythonSources(os.DirFS(filepath.Join(dir, "library")), "."), nil
}

// pythonSources are those below a folder, links aside, as many as an author oversees.
func pythonSources(tree fs.FS, folder string) []scriptSource {
	sources := []scriptSource{}
	room := int64(mostScriptBytes)
	// what cannot be read is not looked at
	_ = fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case len(sources) == mostScripts:
			return fs.SkipAll
		case !d.Type().IsRegular() || path.Ext(name) != ".py":
			return nil
		}
		f, err := tree.Open(name)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, room+1))
		if err != nil || int64(len(text)) > room {
			return nil //nolint:nilerr // as above
		}
		room -= int64(len(text))
		sources = append(sources, scriptSource{Name: name, Source: text})
		return nil
	})
	return sources
}

var pythonName = regexp.MustCompile(`^python[0-9.]*$`)

// interpreter is the component's own interpreter where that is one of this host, else python3, and whether no component
// names another. One that lies in the package, or is called otherwise, is not run: a package is only read here.
func interpreter(pkg *packages.Package, app appdef.App) (python string, plain bool) {
	python, plain = "python3", true
	for _, c := range app.Components {
		own := c.Settings.Python
		if own == "" || own == "python3" {
			continue
		}
		plain = false
		if !filepath.IsAbs(own) || !pythonName.MatchString(filepath.Base(own)) {
			continue
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(own))
		if err != nil || pkg.Path != "" && files.Within(folder, pkg.Path) {
			continue
		}
		if at, err := exec.LookPath(own); err == nil {
			return at, false
		}
	}
	return python, plain
}

// askPython runs in isolation (-I) and in /: no variable and no file of the current folder has a say.
func askPython(ctx context.Context, python string, question scriptQuestion) (scriptAnswer, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return scriptAnswer{}, err
	}
	at, err := exec.LookPath(python)
	if err != nil {
		return scriptAnswer{}, fmt.Errorf("no %s on this host", python)
	}
	ctx, cancel := context.WithTimeout(ctx, scriptsPatience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, at, "-I", "-c", python2.Names+libraryPython+lintPython)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.WaitDelay = "/", bytes.NewReader(text), &out, time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return scriptAnswer{}, fmt.Errorf("%s: no answer within %v", python, scriptsPatience)
		}
		return scriptAnswer{}, fmt.Errorf("%s: %w", python, err)
	}
	var answer scriptAnswer
	if err := json.NewDecoder(io.LimitReader(&out, mostScriptAnswer)).Decode(&answer); err != nil {
		return scriptAnswer{}, fmt.Errorf("%s: answer: %w", python, err)
	}
	if len(answer.Files) != len(question.Files) {
		return scriptAnswer{}, errors.New(python + ": an answer that is short of files")
	}
	return answer, nil
}

// script is what was found as the advice wants it.
func (f scriptFacts) script(python, text string) slider.Script {
	s := slider.Script{
		Name: f.Name, Text: text, Class: f.Class, Unrun: f.Unrun, Templates: f.Template,
		Programs: f.Programs, Reads: f.Reads,
	}
	for _, refused := range f.Refused {
		s.Faults = append(s.Faults, slider.ScriptFault{
			Line: refused.Line, Got: refused.Failure, Want: "what Python " + python + " can read",
			Hint: refused.advice(f.Name), Fatal: true,
		})
	}
	if f.Oldest != nil {
		s.Faults = append(s.Faults, slider.ScriptFault{
			Line: f.Oldest.Line, Got: f.Oldest.Failure, Want: "what Python 3.8 can read",
			Hint: "hosts may have no later one; muster.python names another",
		})
	}
	for _, doubt := range f.Doubts {
		if doubt.Want != "" {
			s.Faults = append(s.Faults, slider.ScriptFault{
				Line: doubt.Line, Got: doubt.Failure, Want: doubt.Want, Hint: doubt.Hint,
			})
			continue
		}
		hint := doubt.advice(f.Name)
		if doubt.ByHand {
			hint, _, _ = strings.Cut(hint, "; muster package modernize")
		}
		if doubt.Write != "" { // the dictionaries of a command's JSON still have the method
			hint = fmt.Sprintf("`%s` fails on a plain dict: write %s; muster package modernize DIR --write does it",
				doubt.Source, doubt.Write)
		}
		if hint != "" {
			s.Faults = append(s.Faults, slider.ScriptFault{
				Line: doubt.Line, Got: doubt.Failure, Want: "what Python 3 can run", Hint: hint,
			})
		}
	}
	if f.More != nil {
		s.Faults = append(s.Faults, slider.ScriptFault{
			Line: f.More.Line, Got: appdef.Counted(f.More.Count, "more finding") + " from here on",
			Want: "Python 3", Hint: "change those above and run lint again",
		})
	}
	return s
}

// advice is what the agent would say once the script had failed so.
func (f scriptFault) advice(name string) string {
	if f.Write != "" {
		return slidershell.Rewrite(f.Source, f.Write, true)
	}
	const root = "/"
	file := root + name
	text := slidershell.Advice(file, fmt.Sprintf("  File %q, line %d\n    %s\n%s\n", file, f.Line, f.Source, f.Failure))
	return strings.TrimPrefix(text, fmt.Sprintf("%s:%d: ", name, f.Line))
}
