package slider

import (
	"bytes"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/muster-agent/muster/appdef"
)

// Fixed is a file of a package as Fix would write it.
type Fixed struct {
	Name          string
	Before, After []byte
	Changes       []string // one for each change, as people read it
}

// Fix mends a file of a package where there is only one way to mend it: a misspelt key with a single similar key, a
// missing schemaVersion or schema, numbers where Slider has texts, the letter case of a word from a list, CRLF at the
// ends of lines, and the byte order mark. Comments, order and layout stay: the text is edited, not rewritten. In a file
// that is not JSON only CRLF and mark are removed. Name is relative to the package; an unknown file is returned
// unchanged. A readable document stays readable, and a fixed one needs no further fix.
func Fix(name string, data []byte) Fixed {
	f := Fixed{Name: name, Before: data, After: data}
	kind := fixable(name)
	if kind == "" {
		return f
	}
	f.unmark()
	if path.Ext(name) != ".json" {
		return f
	}
	for range deepest { // a key that is renamed may have something to mend under it
		next, changes := fixJSON(kind, f.After)
		if len(changes) == 0 {
			break
		}
		f.After, f.Changes = next, append(f.Changes, changes...)
	}
	return f
}

// fixable is the document that a file contains, `script` for a script, or nothing.
func fixable(name string) string {
	base := path.Base(name)
	switch {
	case name == "metainfo.json" || name == "metainfo.xml":
		return "metainfo"
	case slices.Contains(namesOf("appConfig"), name):
		return "appConfig"
	case slices.Contains(namesOf("resources"), name):
		return "resources"
	case strings.HasPrefix(name, "package/") && (path.Ext(base) == ".py" || path.Ext(base) == ".sh"):
		return "script"
	}
	return ""
}

// namesOf lists the possible file names of a document.
func namesOf(document string) []string {
	return []string{document + ".json", document + ".default.json", document + "-default.json"}
}

var lineEnds = regexp.MustCompile(`\r+\n`)

// unmark removes what editors of other systems leave.
func (f *Fixed) unmark() {
	for trimmed := trimBOM(f.After); len(trimmed) < len(f.After); trimmed = trimBOM(f.After) {
		f.After = trimmed
		f.Changes = append(f.Changes, "the byte order mark at the start is taken away")
	}
	if n := len(lineEnds.FindAllIndex(f.After, -1)); n > 0 {
		f.After = lineEnds.ReplaceAll(f.After, []byte("\n"))
		f.Changes = append(f.Changes, fmt.Sprintf("CRLF at the end of %d lines is LF", n))
	}
}

// fixing collects the edits of one pass over a document.
type fixing struct {
	edits   []edit
	changes []string
}

// edit puts text in place of the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// fixJSON is one pass. It returns no changes if there is nothing to do, or if the result would be no document.
func fixJSON(document string, data []byte) ([]byte, []string) {
	if _, deep := appdef.TooDeepJSON(data); deep {
		return data, nil
	}
	text := data
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(bytes.Clone(text), '\n') // ends a comment on the last line
	}
	v, err := hujson.Parse(text)
	root, ok := v.Value.(*hujson.Object)
	if err != nil || !ok {
		return data, nil
	}
	f := &fixing{}
	if document == "metainfo" {
		f.object("", root, reflect.TypeFor[Metainfo]())
	} else {
		f.conftree(document, root)
	}
	if len(f.edits) == 0 {
		f.version(document, &v, root)
	}
	if len(f.edits) == 0 {
		return data, nil
	}
	out := f.apply(data)
	again := append(bytes.Clone(out), '\n')
	if _, deep := appdef.TooDeepJSON(again); deep {
		return data, nil
	}
	if _, err := hujson.Parse(again); err != nil {
		return data, nil
	}
	return out, f.changes
}

func (f *fixing) apply(data []byte) []byte {
	slices.SortFunc(f.edits, func(x, y edit) int { return x.start - y.start })
	var b bytes.Buffer
	at := 0
	for _, e := range f.edits {
		b.Write(data[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.Write(data[at:])
	return b.Bytes()
}

func (f *fixing) replace(pointer string, v *hujson.Value, with, change string) {
	f.edits = append(f.edits, edit{start: v.StartOffset, end: v.EndOffset, text: with})
	f.changes = append(f.changes, pointer+": "+change)
}

// nameOf is the text of a member's key.
func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// rename mends the unknown keys of an object that are similar to one of the candidates.
func (f *fixing) rename(pointer string, o *hujson.Object, known func(string) bool, candidates []string) {
	present := map[string]bool{}
	for i := range o.Members {
		present[nameOf(&o.Members[i])] = true
	}
	for i := range o.Members {
		m := &o.Members[i]
		name := nameOf(m)
		if known(name) {
			continue
		}
		near, ok := single(name, candidates)
		if !ok || present[near] {
			continue
		}
		present[near] = true
		f.replace(pointer, &m.Name, strconv.Quote(near), appdef.Quote(name)+" is "+near)
	}
}

// single finds the one name that is similar to a text; with two there is none.
func single(text string, names []string) (string, bool) {
	near, ok := appdef.Nearest(text, names)
	if !ok {
		return "", false
	}
	_, second := appdef.Nearest(text, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == near }))
	return near, !second
}

// object mends an object of metainfo, and the objects in it.
func (f *fixing) object(pointer string, o *hujson.Object, t reflect.Type) {
	known := fieldNames(t)
	f.rename(pointer, o, func(name string) bool { return slices.Contains(known, name) }, known)
	for i := range o.Members {
		m := &o.Members[i]
		name := nameOf(m)
		at := pointer + appdef.Pointer(name)
		within := inner(t, name)
		switch v := m.Value.Value.(type) {
		case *hujson.Object:
			if within != nil {
				f.object(at, v, within)
			}
		case *hujson.Array:
			for n := range v.Elements {
				if item, ok := v.Elements[n].Value.(*hujson.Object); ok && within != nil {
					f.object(at+appdef.Pointer(strconv.Itoa(n)), item, within)
				}
			}
		case hujson.Literal:
			f.word(at, &m.Value, v, words(t, name))
		}
	}
}

// words lists the allowed values of a field, if its type has a list.
func words(t reflect.Type, key string) []string {
	i := slices.Index(fieldNames(t), key)
	if i < 0 {
		return nil
	}
	var list []string
	for part := range strings.SplitSeq(t.Field(i).Tag.Get("jsonschema"), ",") {
		if word, ok := strings.CutPrefix(part, "enum="); ok {
			list = append(list, word)
		}
	}
	return list
}

// word mends the letter case of a value from a list.
func (f *fixing) word(at string, v *hujson.Value, l hujson.Literal, list []string) {
	if l.Kind() != '"' || slices.Contains(list, l.String()) {
		return
	}
	same := slices.DeleteFunc(slices.Clone(list), func(word string) bool {
		return !strings.EqualFold(word, l.String())
	})
	if len(same) == 1 {
		f.replace(at, v, strconv.Quote(same[0]), appdef.Quote(l.String())+" is "+same[0])
	}
}

// conftree mends an appConfig or a resources document.
func (f *fixing) conftree(document string, root *hujson.Object) {
	known := fields[ConfTree]()
	f.rename("", root, func(name string) bool { return slices.Contains(known, name) }, known)
	for i := range root.Members {
		m := &root.Members[i]
		section, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		switch nameOf(m) {
		case "global":
			f.section("/global", document, section, true)
		case "components":
			for n := range section.Members {
				c := &section.Members[n]
				if own, ok := c.Value.Value.(*hujson.Object); ok && !outsider(nameOf(c)) {
					f.section("/components"+appdef.Pointer(nameOf(c)), document, own, false)
				}
			}
		}
	}
}

// section mends one level: muster's keys, in resources also Slider's, and values that are no texts.
func (f *fixing) section(pointer, document string, o *hujson.Object, global bool) {
	var candidates, families []string
	for _, k := range appdef.Keys() {
		if prefix, family := strings.CutSuffix(k.Name, "*"); family {
			families = append(families, prefix)
		} else if global || !k.Global {
			candidates = append(candidates, k.Name)
		}
	}
	if document == "resources" {
		candidates = append(candidates, resourceNames()...)
		slices.Sort(candidates)
		candidates = slices.Compact(candidates)
	}
	known := func(name string) bool {
		mine := strings.HasPrefix(name, "muster.") || document == "resources" && strings.HasPrefix(name, "yarn.")
		return !mine || slices.Contains(candidates, name) || !global &&
			slices.ContainsFunc(appdef.Keys(), func(k appdef.Key) bool {
				return k.Name == name
			}) ||
			slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	f.rename(pointer, o, known, candidates)
	for i := range o.Members {
		m := &o.Members[i]
		if l, ok := m.Value.Value.(hujson.Literal); ok && (l.Kind() == '0' || l.Kind() == 't' || l.Kind() == 'f') {
			f.replace(pointer+appdef.Pointer(nameOf(m)), &m.Value, `"`+string(l)+`"`, string(l)+" is a text")
		}
	}
}

// version adds the version of the format to a document without one: the version that the loader assumes.
func (f *fixing) version(document string, v *hujson.Value, root *hujson.Object) {
	key, value := "schema", schema
	if document == "metainfo" {
		key, value = "schemaVersion", "2.1"
	}
	text := fmt.Sprintf("%q: %q", key, value)
	for i := range root.Members {
		if nameOf(&root.Members[i]) == key {
			return
		}
	}
	if len(root.Members) > 0 {
		text = blanks(string(root.Members[0].Name.BeforeExtra)) + text + ","
	}
	at := v.StartOffset + 1 // after the brace
	f.edits = append(f.edits, edit{start: at, end: at, text: text})
	f.changes = append(f.changes, fmt.Sprintf("%s: %q is added", key, value))
}

// blanks is how the first key of an object is set off, without the comments before it.
func blanks(extra string) string {
	if !strings.Contains(extra, "/") {
		return extra
	}
	if at := strings.LastIndexByte(extra, '\n'); at >= 0 && strings.TrimSpace(extra[at:]) == "" {
		return extra[at:]
	}
	return ""
}
