package appdef

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostYAML limits the values of a YAML document: aliases repeat what they stand for.
const mostYAML = 200_000

// ReadYAML reads one YAML document as the same values that ReadJSON makes, aliases and merge keys resolved. It returns
// nil if the document is unreadable; the problems have the reason. A number has the digits that JavaScript prints.
func ReadYAML(file string, data []byte) (*JSONNode, Problems) {
	r := yamlReader{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		r.syntax(err)
		return nil, r.found
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.bad("", second.Line, "a second document", "one document", "leave out what follows the line ---")
		return nil, r.found
	}
	root := r.node(&document, "", 0)
	if r.stopped {
		return nil, r.found
	}
	return root, r.found
}

// yamlReader is one ReadYAML.
type yamlReader struct {
	file    string
	found   Problems
	values  int
	stopped bool
}

func (r *yamlReader) bad(pointer string, line int, got, want, hint string) {
	if r.stopped {
		return
	}
	r.found = append(r.found, Place{File: r.file, Pointer: pointer, Line: line}.Problem(got, want, hint))
}

// yamlError is how the library prints its errors.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func (r *yamlReader) syntax(err error) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		r.bad("", 0, "a document that ends before its first value", "YAML", "")
		return
	}
	line, _ := strconv.Atoi(m[1])
	r.bad("", line, "a document that cannot be read: "+m[2], "YAML", "")
}

// stop reports what makes the rest of the document unreadable.
func (r *yamlReader) stop(n *yaml.Node, pointer, got, hint string) *JSONNode {
	r.bad(pointer, n.Line, got, "a definition", hint)
	r.stopped = true
	return &JSONNode{Kind: JSONNull, Line: n.Line}
}

func (r *yamlReader) node(n *yaml.Node, pointer string, depth int) *JSONNode {
	r.values++
	switch {
	case r.stopped:
		return &JSONNode{Kind: JSONNull, Line: n.Line}
	case depth > DeepestJSON:
		return r.stop(n, "", fmt.Sprintf("more than %d levels", DeepestJSON), "")
	case r.values > mostYAML:
		return r.stop(n, "", fmt.Sprintf("more than %d values", mostYAML), "an alias counts as what it stands for")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.node(n.Content[0], pointer, depth)
	case yaml.AliasNode:
		return r.node(n.Alias, pointer, depth+1)
	case yaml.SequenceNode:
		list := &JSONNode{Kind: JSONArray, Line: n.Line}
		for i, item := range n.Content {
			list.Items = append(list.Items, r.node(item, pointer+Pointer(strconv.Itoa(i)), depth+1))
		}
		return list
	case yaml.MappingNode:
		return r.mapping(n, pointer, depth)
	case yaml.ScalarNode:
	}
	return r.scalar(n, pointer)
}

// mapping reads an object. PAI refuses a key that stands twice, and so does this.
func (r *yamlReader) mapping(n *yaml.Node, pointer string, depth int) *JSONNode {
	object := &JSONNode{Kind: JSONObject, Line: n.Line}
	seen := map[string]bool{} // an object may have very many keys
	var merged []*JSONNode
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			r.bad(pointer, key.Line, "a key that is no text", "a text", "")
			continue
		}
		if key.ShortTag() == "!!merge" {
			all := []*JSONNode{r.node(value, pointer, depth+1)}
			if all[0].Kind == JSONArray {
				all = all[0].Items
			}
			if slices.ContainsFunc(all, func(from *JSONNode) bool { return from.Kind != JSONObject }) {
				r.bad(pointer, key.Line, "<< with a value that is no object", "an object, or a list of objects", "")
				continue
			}
			merged = append(merged, all...)
			continue
		}
		at := pointer + Pointer(key.Value)
		read := r.node(value, at, depth+1)
		if seen[key.Value] {
			r.bad(at, key.Line, "a second key "+quote(key.Value), "each key once", "")
			continue
		}
		seen[key.Value] = true
		object.Members = append(object.Members, jsonMember{Name: key.Value, Value: read})
	}
	for _, from := range merged {
		for _, m := range from.Members {
			if !seen[m.Name] {
				seen[m.Name] = true
				object.Members = append(object.Members, m)
			}
		}
	}
	return object
}

func (r *yamlReader) scalar(n *yaml.Node, pointer string) *JSONNode {
	text := &JSONNode{Kind: JSONText, Text: n.Value, Line: n.Line}
	tag := n.ShortTag()
	switch tag {
	case "!!str", "!!timestamp":
		return text
	case "!!null":
		return &JSONNode{Kind: JSONNull, Line: n.Line}
	}
	var value any
	if err := n.Decode(&value); err != nil {
		r.bad(pointer, n.Line, quote(n.Value)+" with the tag "+tag, "a text, a number, true, false or null", "")
		return text
	}
	switch v := value.(type) {
	case bool:
		return &JSONNode{Kind: JSONBoolean, Text: strconv.FormatBool(v), Line: n.Line}
	case int, int64, uint64:
		return &JSONNode{Kind: JSONNumber, Text: fmt.Sprint(v), Line: n.Line}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return text // JSON has no such number
		}
		return &JSONNode{Kind: JSONNumber, Text: decimal(v), Line: n.Line}
	}
	r.bad(pointer, n.Line, "the tag "+tag, "a text, a number, true, false or null", "")
	return text
}

// decimal prints a number as JavaScript does, so that 1.0 is 1 and 0.0001 has no exponent.
func decimal(v float64) string {
	if size := math.Abs(v); v == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.NewReplacer("e-0", "e-", "e+0", "e+").Replace(strconv.FormatFloat(v, 'e', -1, 64))
}
