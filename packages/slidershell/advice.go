package slidershell

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/muster-agent/muster/packages/python2"
)

// Advice says in one line what a script must change to run by Python 3, from what Python wrote to stderr: file and
// line, the offending text, and what to write. It is empty when the failure is not one of Python 2's language, or
// not in the package that script belongs to.
func Advice(script, stderr string) string {
	f, ok := lastFrame(stderr)
	if !ok {
		return ""
	}
	name, ok := inPackage(script, f.file)
	if !ok {
		return ""
	}
	for _, r := range rules {
		write, ok := r.match(f)
		if !ok {
			continue
		}
		return fmt.Sprintf("%s:%s: %s", name, f.line, Rewrite(f.source, write, !r.byHand))
	}
	return ""
}

// Rewrite is the advice to write something else in place of a source line, which 2to3 does or leaves to the author.
func Rewrite(source, write string, by2to3 bool) string {
	text := fmt.Sprintf("`%s` does not run on Python 3: write %s", source, write)
	if by2to3 {
		text += "; muster package modernize DIR --write does it"
	}
	return text
}

// frame is where a traceback ends, and the line that says why.
type frame struct{ file, line, source, failure string }

var (
	frameLine   = regexp.MustCompile(`^ +File "([^"]+)", line ([0-9]+)`)
	failureLine = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:Error|Exception|Warning)\b.*`)
	marks       = regexp.MustCompile(`^[ ~^]+$`)
)

func lastFrame(stderr string) (frame, bool) {
	f, found := frame{}, false
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\r\n")
		switch m := frameLine.FindStringSubmatch(line); {
		case m != nil:
			f, found = frame{file: m[1], line: m[2]}, true
		case !found || f.failure != "":
		case failureLine.MatchString(line):
			f.failure = line
		case f.source == "" && strings.HasPrefix(line, " ") && !marks.MatchString(line):
			f.source = strings.TrimSpace(line)
		}
	}
	return f, found && f.failure != ""
}

// inPackage names a file as the author knows it, from the package's folder on. Python resolves the links of the folder
// in which it finds modules, so that a module and the script that imports it may have different paths.
func inPackage(script, file string) (name string, ok bool) {
	const scripts = "/package/scripts/"
	if at := strings.LastIndex(file, scripts); at >= 0 && strings.Contains(script, scripts) {
		return file[at+1:], true
	}
	folder := filepath.Dir(script)
	if at := strings.LastIndex(script, "/scripts/"); at >= 0 {
		folder = filepath.Dir(script[:at])
	}
	name, err := filepath.Rel(folder, file)
	return name, err == nil && filepath.IsLocal(name)
}

// rule knows one construct by the failure and, where that says too little, by the source.
type rule struct {
	failure, source *regexp.Regexp
	// write is what Python 3 wants; $1 and so on are groups of source where there is one, else of failure.
	write string
	// byHand: 2to3 leaves it.
	byHand bool
}

func (r rule) match(f frame) (write string, ok bool) {
	failed := r.failure.FindStringSubmatchIndex(f.failure)
	if failed == nil {
		return "", false
	}
	if r.source == nil {
		return string(r.failure.ExpandString(nil, r.write, f.failure, failed)), true
	}
	found := r.source.FindStringSubmatchIndex(f.source)
	if found == nil {
		return "", false
	}
	return string(r.source.ExpandString(nil, r.write, f.source, found)), true
}

var syntax = regexp.MustCompile(`^SyntaxError: `)

var rules = append(spellings, removed()...)

// spellings are what the parser refuses, and attributes that are gone. The wording of the parser differs between
// Pythons, so most are known by the source.
var spellings = []rule{
	{failure: regexp.MustCompile(`Missing parentheses in call to '(print|exec)'`), write: "${1}(…)"},
	{
		failure: regexp.MustCompile(`unsupported operand type\(s\) for >>: 'builtin_function_or_method'`),
		write:   "print(…, file=…)",
	},
	{failure: syntax, source: regexp.MustCompile(`^except\s+(.+?)\s*,\s*(\w+)\s*:`), write: "except $1 as $2:"},
	{failure: syntax, source: regexp.MustCompile(`^raise\s+([\w.]+)\s*,`), write: "raise $1(…)"},
	{failure: syntax, source: regexp.MustCompile(`<>`), write: "!="},
	{failure: syntax, source: regexp.MustCompile("`([^`]+)`"), write: "repr($1)"},
	{failure: syntax, source: regexp.MustCompile(`\b0([0-7]+)\b`), write: "0o$1"},
	{failure: syntax, source: regexp.MustCompile(`\b(0[xX][0-9a-fA-F]+|[0-9]+)[lL]\b`), write: "$1"},
	{failure: syntax, source: regexp.MustCompile(`\b[uU][rR](['"])`), write: "r${1}…${1}"},
	{
		failure: syntax, source: regexp.MustCompile(`^def\s+\w+\(.*\(`),
		write: "one name in place of the parentheses, taken apart in the body",
	},
	{failure: syntax, source: regexp.MustCompile(`\blambda\s*\(`), write: "lambda with one name, and x[0], x[1]"},
	{failure: regexp.MustCompile(`^TabError: `), write: "spaces alone in front of a line", byHand: true},
	{
		failure: regexp.MustCompile(`exceptions must derive from BaseException`),
		source:  regexp.MustCompile(`^raise\s+['"]`), write: `raise Fail("…")`, byHand: true,
	},
	{failure: regexp.MustCompile(`has no attribute 'next'`), write: "next(…)"},
	{
		failure: regexp.MustCompile(`'str' object has no attribute 'decode'`),
		write:   "the text as it is: str is Unicode",
		byHand:  true,
	},
	{
		failure: regexp.MustCompile(`a bytes-like object is required, not 'str'|can't concat str to bytes`),
		write:   "b'…', or .decode() on what was read: bytes are no text", byHand: true,
	},
	{
		failure: regexp.MustCompile(`No module named '(\w+)': it is beside the script`),
		write:   "from . import $1, or from .$1 import …",
	},
	{
		failure: regexp.MustCompile(
			`sort\(\) takes no positional arguments|'cmp' is an invalid keyword argument for sort`,
		),
		write: "sort(key=functools.cmp_to_key(…))", byHand: true,
	},
	{
		failure: regexp.MustCompile(`sorted expected 1 argument`),
		write:   "sorted(…, key=functools.cmp_to_key(…))", byHand: true,
	},
	{
		failure: regexp.MustCompile(`LookupError: '(\w+)' is not a text encoding`),
		write:   `codecs.encode(…, "$1") or codecs.decode(…, "$1") of bytes`, byHand: true,
	},
	{failure: regexp.MustCompile(`has no attribute 'message'`), write: "str(…)", byHand: true},
	{
		failure: regexp.MustCompile(
			`'(?:dict_\w+|filter|map|zip)' object (?:is not subscriptable|has no attribute 'sort')`,
		),
		write: "list(…) around what is no list in Python 3", byHand: true,
	},
	{
		failure: regexp.MustCompile(`unsupported operand type\(s\) for \+: .*'(?:dict_\w+|filter|map|zip)'`),
		write:   "list(…) around what is no list in Python 3", byHand: true,
	},
	{
		failure: regexp.MustCompile(`object of type '(?:filter|map|zip)' has no len\(\)`),
		write:   "list(…) around what is no list in Python 3", byHand: true,
	},
}

// removed are the rules for what the table of Python 2 has: builtins, methods, modules, and names of modules.
func removed() []rule {
	changed, left := python2.Table()
	return append(tabled(changed, false), tabled(left, true)...)
}

func tabled(t python2.Removed, byHand bool) []rule {
	var out []rule
	add := func(failure, write string) {
		out = append(out, rule{
			failure: regexp.MustCompile(failure), write: strings.ReplaceAll(write, "$", "$$"), byHand: byHand,
		})
	}
	for name, write := range t.Builtins {
		add(`^NameError: name '`+name+`' is not defined`, write)
	}
	for name, write := range t.Methods {
		add(`has no attribute '`+name+`'`, write)
	}
	for name, write := range t.Modules {
		if !strings.Contains(write, " ") { // a module; else what to do without one
			write = "import " + write
		}
		add(`^(?:ModuleNotFoundError|ImportError): No module named '`+name+`'$`, write)
	}
	for module, names := range t.Members {
		for name, write := range names {
			const failure = `cannot import name '%[2]s' from '%[1]s'|module '%[1]s' has no attribute '%[2]s'`
			add(fmt.Sprintf(failure, module, name), write)
		}
	}
	return out
}
