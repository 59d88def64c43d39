package appdef

import (
	"slices"
	"strings"
)

// The limits of one expansion. A definition may come from a stranger: in a chain of values that each name the next one
// twice, every link would double the size.
const (
	mostExpanded = 1 << 20 // bytes of the outcome
	mostLookups  = 10_000
	deepest      = 100 // references from value to value
)

// Expand fills the placeholders of text with what lookup knows:
//
//	${NAME}                    lookup("NAME"); the value is taken as it is
//	${site.<dict>.<key>}       the same, and the value is expanded in turn
//	${@//site/<dict>/<key>}    lookup("@//site/<dict>/<key>"), expanded in turn until stable
//	{$conf:@//site/<d>/<k>}    the same as ${@//site/<d>/<k>}
//
// What lookup does not know, what refers to itself and what outgrows the bounds (1 MiB, 100 values
// deep) stays as written; unresolved has its names, sorted, each once. Text that only looks similar (`${x:-y}`,
// `$HOME`, `${a[0]}`) belongs to a shell and is left alone, unreported. A text without placeholders
// comes back unchanged.
func Expand(text string, lookup func(name string) (string, bool)) (out string, unresolved []string) {
	e := expander{lookup: lookup, missing: map[string]bool{}}
	out = e.expand(text)
	for name := range e.missing {
		unresolved = append(unresolved, name)
	}
	slices.Sort(unresolved)
	return out, unresolved
}

// expander is one run of Expand.
type expander struct {
	lookup  func(string) (string, bool)
	open    []string        // names being expanded, outermost first
	missing map[string]bool // names left as written
	lookups int
	bytes   int
}

func (e *expander) expand(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	for text != "" {
		before, ph, after, found := cutPlaceholder(text)
		b.WriteString(before)
		if !found {
			break
		}
		b.WriteString(e.value(ph))
		text = after
	}
	return b.String()
}

// value is what stands for the placeholder: its value, or itself.
func (e *expander) value(ph placeholder) string {
	text, ok := "", false
	if e.lookups < mostLookups && e.bytes < mostExpanded && len(e.open) < deepest && !slices.Contains(e.open, ph.name) {
		e.lookups++
		text, ok = e.lookup(ph.name)
	}
	if ok && ph.refers() {
		e.open = append(e.open, ph.name)
		text = e.expand(text)
		e.open = e.open[:len(e.open)-1]
	}
	if !ok || e.bytes+len(text) > mostExpanded {
		e.missing[ph.name] = true
		return ph.text
	}
	e.bytes += len(text)
	return text
}

// placeholder is one `${NAME}` or `{$conf:NAME}` in a text.
type placeholder struct {
	text string // as written
	name string // USER, ps_HOST, ps.ALLOCATED_PORT, site.global.x, @//site/global/x
}

// refers tells whether the value is another text of the definition, which has placeholders itself.
func (p placeholder) refers() bool {
	return strings.HasPrefix(p.name, sitePath) || strings.HasPrefix(p.name, "site.")
}

const (
	sitePath           = "@//site/"
	longestPlaceholder = 512 // bytes; keeps a text of opening braces linear
)

// cutPlaceholder splits text around its first placeholder.
func cutPlaceholder(text string) (before string, ph placeholder, after string, found bool) {
	for at := 0; at < len(text); at++ {
		if text[at] != '$' && text[at] != '{' {
			continue
		}
		if ph, ok := placeholderAt(text[at:]); ok {
			return text[:at], ph, text[at+len(ph.text):], true
		}
	}
	return text, placeholder{}, "", false
}

func placeholderAt(text string) (placeholder, bool) {
	body, ok := strings.CutPrefix(text, "${")
	opened := 2
	if !ok {
		if body, ok = strings.CutPrefix(text, "{$conf:"); !ok || !strings.HasPrefix(body, sitePath) {
			return placeholder{}, false
		}
		opened = len("{$conf:")
	}
	end := strings.IndexByte(body[:min(len(body), longestPlaceholder+1)], '}')
	if end <= 0 || !placeholderName(body[:end]) {
		return placeholder{}, false
	}
	return placeholder{text: text[:opened+end+1], name: body[:end]}, true
}

// placeholderName tells a name from what a shell puts between braces.
func placeholderName(name string) bool {
	if rest, ok := strings.CutPrefix(name, sitePath); ok {
		dict, key, ok := strings.Cut(rest, "/")
		return ok && dict != "" && key != "" && !strings.ContainsAny(rest, "{}$\n")
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-' && c != '~') {
			return false
		}
		// ${name-text} is a shell's: only a component's name, which ends in _HOST or .ALLOCATED_PORT, has a dash
	}
	return !strings.ContainsAny(name, "-~") || strings.HasPrefix(name, "site.") ||
		strings.HasSuffix(name, hostSuffix) || strings.HasSuffix(name, portSuffix)
}

const (
	hostSuffix = "_HOST"
	portSuffix = ".ALLOCATED_PORT"
)

// Placeholders lists the names that text refers to, in order of appearance, each once.
func Placeholders(text string) []string {
	var names []string
	for {
		_, ph, after, found := cutPlaceholder(text)
		if !found {
			return names
		}
		if !slices.Contains(names, ph.name) {
			names = append(names, ph.name)
		}
		text = after
	}
}

// siteKey turns `@//site/<dict>/<key>` and `site.<dict>.<key>` into the key of the configuration.
func siteKey(name string) (dict, key string, ok bool) {
	if rest, found := strings.CutPrefix(name, sitePath); found {
		return strings.Cut(rest, "/")
	}
	if rest, found := strings.CutPrefix(name, "site."); found {
		return strings.Cut(rest, ".")
	}
	return "", "", false
}

// siteKeyIn is siteKey for dictionaries whose names may have dots: of those that are known, the longest that begins the
// name counts.
func siteKeyIn[V any](name string, known map[string]V) (dict, key string, ok bool) {
	dict, key, ok = siteKey(name)
	rest, dotted := strings.CutPrefix(name, "site.")
	if !dotted {
		return dict, key, ok
	}
	for candidate := range known {
		if after, begins := strings.CutPrefix(rest, candidate+"."); begins && len(candidate) > len(dict) {
			dict, key = candidate, after
		}
	}
	return dict, key, ok
}
