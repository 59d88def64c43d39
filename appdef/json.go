package appdef

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonKind is the kind of a JSON value, as problems name it.
type jsonKind string

// The kinds of JSON.
const (
	JSONObject  jsonKind = "an object"
	JSONArray   jsonKind = "a list"
	JSONText    jsonKind = "a text"
	JSONNumber  jsonKind = "a number"
	JSONBoolean jsonKind = "true or false"
	JSONNull    jsonKind = "null"
)

// JSONNode is one value of a document, with the line where it begins.
type JSONNode struct {
	Kind    jsonKind
	Text    string // of a text, a number, true and false
	Members []jsonMember
	Items   []*JSONNode
	Line    int
}

// jsonMember is one key of an object. Each name stands once: of repeated ones ReadJSON keeps the last, and warns.
type jsonMember struct {
	Name  string
	Value *JSONNode
}

// Scalar tells a text, a number, true and false from the rest.
func (n *JSONNode) Scalar() bool {
	return n.Kind == JSONText || n.Kind == JSONNumber || n.Kind == JSONBoolean
}

// Member finds a key of an object; nil when there is none.
func (n *JSONNode) Member(name string) *JSONNode {
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Value is the node as plain Go values, for fields that are kept and ignored. Numbers keep their digits.
func (n *JSONNode) Value() any {
	switch n.Kind {
	case JSONObject:
		m := make(map[string]any, len(n.Members))
		for _, member := range n.Members {
			m[member.Name] = member.Value.Value()
		}
		return m
	case JSONArray:
		items := make([]any, len(n.Items))
		for i, item := range n.Items {
			items[i] = item.Value()
		}
		return items
	case JSONNumber:
		return json.Number(n.Text)
	case JSONBoolean:
		return n.Text == "true"
	case JSONNull:
		return nil
	case JSONText:
	}
	return n.Text
}

// DeepestJSON limits the nesting of a document, because its readers are recursive.
const DeepestJSON = 100

// ReadJSON reads JSON with comments, trailing commas and the byte order mark of some editors. It returns nil if the
// document is unreadable; the problems have the reason.
func ReadJSON(file string, data []byte) (*JSONNode, Problems) {
	r := jsonReader{file: file}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if at, ok := TooDeepJSON(data); ok {
		at := 1 + bytes.Count(data[:at], []byte("\n"))
		r.bad("", at, fmt.Sprintf("more than %d levels of { and [", DeepestJSON), "a definition", "")
		return nil, r.found
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(bytes.Clone(data), '\n') // ends a comment on the last line
	}
	v, err := hujson.Parse(data)
	if err != nil {
		r.syntax(err)
		return nil, r.found
	}
	r.data, r.line = data, 1
	return r.node(&v, ""), r.found
}

// jsonReader is one ReadJSON. It turns rising offsets into line numbers, in one pass over the document.
type jsonReader struct {
	file  string
	found Problems
	data  []byte
	at    int
	line  int
}

func (r *jsonReader) bad(pointer string, line int, got, want, hint string) {
	r.found = append(r.found, Place{File: r.file, Pointer: pointer, Line: line}.Problem(got, want, hint))
}

// jsonError is how hujson prints its errors.
var jsonError = regexp.MustCompile(`^hujson: line (\d+), column (\d+): (?s:(.*))$`)

func (r *jsonReader) syntax(err error) {
	m := jsonError.FindStringSubmatch(err.Error())
	if m == nil {
		r.bad("", 0, err.Error(), "JSON", "")
		return
	}
	at, _ := strconv.Atoi(m[1])
	what := strings.TrimPrefix(m[3], "parsing ")
	if inside, ok := strings.CutSuffix(what, ": unexpected EOF"); ok {
		what = "the end of the file inside " + article(inside)
	}
	hint := ""
	if literal, ok := strings.CutPrefix(what, "invalid literal: "); ok {
		what = "the unreadable " + quote(literal)
		if strings.HasPrefix(literal, `"`) {
			hint = "a quote is not closed, or a character needs its escape"
		}
	}
	switch {
	case strings.HasPrefix(what, "invalid character '#'"):
		hint = "a comment begins with //"
	case strings.Contains(what, "after object value") || strings.Contains(what, "after array value"):
		hint = "a comma or a bracket is missing before it"
	case strings.HasPrefix(what, "the end of the file"):
		hint = "a bracket or a quote is not closed"
	}
	r.bad("", at, what+" at column "+m[2], "JSON", hint)
}

func article(what string) string {
	if strings.HasPrefix(what, "o") || strings.HasPrefix(what, "a") {
		return "an " + what
	}
	return "a " + what
}

// TooDeepJSON finds the bracket that nests deeper than a definition may. Brackets in texts and comments do not count.
func TooDeepJSON(data []byte) (at int, ok bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > DeepestJSON {
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

func (r *jsonReader) lineOf(offset int) int {
	r.line += bytes.Count(r.data[r.at:max(offset, r.at)], []byte("\n"))
	r.at = max(offset, r.at)
	return r.line
}

func (r *jsonReader) node(v *hujson.Value, pointer string) *JSONNode {
	n := &JSONNode{Line: r.lineOf(v.StartOffset)}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.Kind = JSONObject
		r.members(n, value, pointer)
	case *hujson.Array:
		n.Kind = JSONArray
		for i := range value.Elements {
			n.Items = append(n.Items, r.node(&value.Elements[i], pointer+Pointer(strconv.Itoa(i))))
		}
	case hujson.Literal:
		n.Kind, n.Text = jsonLiteral(value)
	}
	return n
}

func (r *jsonReader) members(n *JSONNode, o *hujson.Object, pointer string) {
	seen := map[string]int{}
	for i := range o.Members {
		m := &o.Members[i]
		_, name := jsonLiteral(m.Name.Value.(hujson.Literal))
		at := r.lineOf(m.Name.StartOffset)
		value := r.node(&m.Value, pointer+Pointer(name))
		first, twice := seen[name]
		if seen[name] = at; !twice {
			n.Members = append(n.Members, jsonMember{Name: name, Value: value})
			continue
		}
		r.found = append(r.found, Place{File: r.file, Pointer: pointer + Pointer(name), Line: at}.Warning(
			fmt.Sprintf("a second key %s at line %d", quote(name), at), "one",
			"it replaces the one at line "+strconv.Itoa(first)).As(RepeatedKey))
		for i := range n.Members {
			if n.Members[i].Name == name {
				n.Members[i].Value = value
			}
		}
	}
}

func jsonLiteral(l hujson.Literal) (jsonKind, string) {
	switch l.Kind() {
	case '"':
		return JSONText, l.String()
	case '0':
		return JSONNumber, string(l)
	case 't', 'f':
		return JSONBoolean, string(l)
	}
	return JSONNull, ""
}

// JSONKeys lists the keys of the outermost object, even if its values are broken; none if the text is no object. It
// tells the kind of a document before it is read.
func JSONKeys(data []byte) []string {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var keys []string
	depth, last := 0, ""
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := min(afterText(data, i), len(data))
			last = string(data[i+1 : max(end, i+1)])
			i = end
		case '/':
			i = afterComment(data, i)
		case ':':
			if depth == 1 {
				keys = append(keys, last)
			}
		default:
			if depth == 0 && !strings.ContainsRune(" \t\r\n", rune(c)) {
				return keys
			}
		}
	}
	return keys
}
