package slider

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/muster-agent/muster/appdef"
)

// deepest bounds the nesting of a document: the parsers recurse.
const deepest = 100

// parseJSON reads JSON with comments and trailing commas. It answers nil when there is nothing to
// read on with; the document has the reason.
func (d *document) parseJSON(data []byte) *node {
	if at, ok := tooDeep(data); ok {
		d.add(d.place("", line(data, at)).Problem(fmt.Sprintf("more than %d levels of { and [ at line %d", deepest, line(data, at)), "a definition", ""))
		return nil
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(bytes.Clone(data), '\n') // ends a comment on the last line
	}
	v, err := hujson.Parse(data)
	if err != nil {
		d.add(d.jsonProblem(err))
		return nil
	}
	return d.fromJSON(&v, &lines{data: data, line: 1}, "")
}

// jsonError is how hujson prints its errors.
var jsonError = regexp.MustCompile(`^hujson: line (\d+), column (\d+): (?s:(.*))$`)

func (d *document) jsonProblem(err error) appdef.Problem {
	m := jsonError.FindStringSubmatch(err.Error())
	if m == nil {
		return d.place("", 0).Problem(err.Error(), "JSON", "")
	}
	at, _ := strconv.Atoi(m[1])
	what := strings.TrimPrefix(m[3], "parsing ")
	if inside, ok := strings.CutSuffix(what, ": unexpected EOF"); ok {
		what = "the end of the file inside " + article(inside)
	}
	hint := ""
	if literal, ok := strings.CutPrefix(what, "invalid literal: "); ok {
		what = "the unreadable " + appdef.Quote(literal)
		if strings.HasPrefix(literal, `"`) {
			hint = "a quote is not closed, or a character needs its escape"
		}
	}
	switch {
	case strings.Contains(what, "after object value") || strings.Contains(what, "after array value"):
		hint = "a comma or a bracket is missing before it"
	case strings.HasPrefix(what, "the end of the file"):
		hint = "a bracket or a quote is not closed"
	}
	return d.place("", at).Problem(fmt.Sprintf("%s at line %s, column %s", what, m[1], m[2]), "JSON", hint)
}

func article(what string) string {
	if strings.HasPrefix(what, "o") || strings.HasPrefix(what, "a") {
		return "an " + what
	}
	return "a " + what
}

func line(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// tooDeep finds the bracket that nests deeper than a definition may. Brackets in texts and comments do not count.
func tooDeep(data []byte) (at int, ok bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > deepest {
				return i, true
			}
		case '}', ']':
			depth--
		case '"':
			i = afterText(data, i)
		case '/':
			i = afterComment(data, i)
		}
	}
	return 0, false
}

// afterText is the offset of the quote that ends the text which starts at i.
func afterText(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// afterComment is the offset of the last byte of the comment which starts at i; i when there is none.
func afterComment(data []byte, i int) int {
	end, skip := "", 0
	switch {
	case bytes.HasPrefix(data[i:], []byte("//")):
		end, skip = "\n", 1
	case bytes.HasPrefix(data[i:], []byte("/*")):
		end, skip = "*/", 2
	default:
		return i
	}
	if n := bytes.Index(data[i+2:], []byte(end)); n >= 0 {
		return i + 2 + n + skip - 1
	}
	return len(data)
}

// lines turns rising offsets into line numbers, in one pass over the document.
type lines struct {
	data []byte
	at   int
	line int
}

func (l *lines) of(offset int) int {
	l.line += bytes.Count(l.data[l.at:max(offset, l.at)], []byte("\n"))
	l.at = max(offset, l.at)
	return l.line
}

func (d *document) fromJSON(v *hujson.Value, l *lines, pointer string) *node {
	n := &node{line: l.of(v.StartOffset)}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.kind = object
		d.jsonMembers(n, value, l, pointer)
	case *hujson.Array:
		n.kind = array
		for i := range value.Elements {
			n.items = append(n.items, d.fromJSON(&value.Elements[i], l, pointer+appdef.Pointer(strconv.Itoa(i))))
		}
	case hujson.Literal:
		n.kind, n.text = literal(value)
	}
	return n
}

func (d *document) jsonMembers(n *node, o *hujson.Object, l *lines, pointer string) {
	seen := map[string]int{}
	for i := range o.Members {
		m := &o.Members[i]
		_, name := literal(m.Name.Value.(hujson.Literal))
		at := l.of(m.Name.StartOffset)
		value := d.fromJSON(&m.Value, l, pointer+appdef.Pointer(name))
		if first, twice := seen[name]; twice {
			d.add(d.place(pointer+appdef.Pointer(name), at).Problem(
				fmt.Sprintf("a second key %s at line %d", appdef.Quote(name), at), "one", fmt.Sprintf("the first is at line %d", first)))
			continue
		}
		seen[name] = at
		n.members = append(n.members, member{name: name, value: value})
	}
}

func literal(l hujson.Literal) (kind, string) {
	switch l.Kind() {
	case '"':
		return text, l.String()
	case '0':
		return number, string(l)
	case 't', 'f':
		return boolean, string(l)
	}
	return null, ""
}
