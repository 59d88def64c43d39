package slidershell

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
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
		text := fmt.Sprintf("%s:%s: `%s` does not run on Python 3: write %s", name, f.line, f.source, write)
		if r.byHand {
			return text
		}
		return text + "; muster package modernize DIR --write does it"
	}
	return ""
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

// inPackage names a file as the author knows it, from the package's folder on.
func inPackage(script, file string) (name string, ok bool) {
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

var rules = append(append(spellings, names()...), modules()...)

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
	{failure: regexp.MustCompile(`has no attribute 'has_key'`), write: "key in dictionary"},
	{failure: regexp.MustCompile(`has no attribute 'iter(items|keys|values)'`), write: ".$1()"},
	{failure: regexp.MustCompile(`has no attribute 'next'`), write: "next(…)"},
	{failure: regexp.MustCompile(`module 'os' has no attribute 'getcwdu'`), write: "os.getcwd()"},
	{
		failure: regexp.MustCompile(`module 'string' has no attribute '(letters|lowercase|uppercase)'`),
		write:   "string.ascii_$1", byHand: true,
	},
	{
		failure: regexp.MustCompile(`'str' object has no attribute 'decode'`),
		write:   "the text as it is: str is Unicode",
		byHand:  true,
	},
	{
		failure: regexp.MustCompile(`a bytes-like object is required, not 'str'|can't concat str to bytes`),
		write:   "b'…', or .decode() on what was read: bytes are no text", byHand: true,
	},
	{failure: regexp.MustCompile(
		`(?:cannot import name|module 'urllib' has no attribute) '(urlencode|quote|quote_plus|unquote|unquote_plus)'`,
	), write: "urllib.parse.$1"},
	{
		failure: regexp.MustCompile(`(?:cannot import name|module 'urllib' has no attribute) '(urlopen|urlretrieve)'`),
		write:   "urllib.request.$1",
	},
}

// names are the built-in functions that are gone.
func names() []rule {
	return table(`^NameError: name '%s' is not defined`, false, [][2]string{
		{"unicode", "str"},
		{"basestring", "str"},
		{"xrange", "range"},
		{"raw_input", "input"},
		{"long", "int"},
		{"unichr", "chr"},
		{"reduce", "functools.reduce"},
		{"execfile", "exec(open(…).read())"},
		{"reload", "importlib.reload"},
		{"intern", "sys.intern"},
	}, [][2]string{
		{"file", "open"},
		{"cmp", "(a > b) - (a < b)"},
	})
}

// modules are those of the standard library that were renamed.
func modules() []rule {
	return table(`^(?:ModuleNotFoundError|ImportError): No module named '%s'`, true, [][2]string{
		{"urllib2", "urllib.request"},
		{"urlparse", "urllib.parse"},
		{"robotparser", "urllib.robotparser"},
		{"httplib", "http.client"},
		{"cookielib", "http.cookiejar"},
		{"Cookie", "http.cookies"},
		{"BaseHTTPServer", "http.server"},
		{"SimpleHTTPServer", "http.server"},
		{"HTMLParser", "html.parser"},
		{"SocketServer", "socketserver"},
		{"xmlrpclib", "xmlrpc.client"},
		{"ConfigParser", "configparser"},
		{"Queue", "queue"},
		{"StringIO", "io"},
		{"cStringIO", "io"},
		{"cPickle", "pickle"},
		{"commands", "subprocess"},
		{"thread", "_thread"},
		{"__builtin__", "builtins"},
	}, [][2]string{
		{"md5", "hashlib"},
		{"sha", "hashlib"},
	})
}

// table makes a rule of each pair: those that 2to3 changes, then those that it leaves.
func table(failure string, imports bool, changed, left [][2]string) []rule {
	var out []rule
	for i, pair := range append(changed, left...) {
		write := strings.ReplaceAll(pair[1], "$", "$$")
		if imports {
			write = "import " + write
		}
		out = append(out, rule{
			failure: regexp.MustCompile(fmt.Sprintf(failure, pair[0])), write: write, byHand: i >= len(changed),
		})
	}
	return out
}
