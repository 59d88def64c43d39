package slider

import (
	"encoding/json"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// kind is what a node is.
type kind string

const (
	object  kind = "an object"
	array   kind = "a list"
	text    kind = "a text"
	number  kind = "a number"
	boolean kind = "true or false"
	null    kind = "null"
)

// node is one value of a document, whether it came as JSON or as XML.
type node struct {
	kind    kind
	text    string // of text, number and boolean
	members []member
	items   []*node
	line    int
}

// member is one key of an object. Each name stands once: the parsers keep the last of repeated ones, and warn.
type member struct {
	name  string
	value *node
}

func (n *node) scalar() bool { return n.kind == text || n.kind == number || n.kind == boolean }

func (n *node) member(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// value is the node as plain Go values, for fields that are kept and ignored.
func (n *node) value() any {
	switch n.kind {
	case object:
		m := make(map[string]any, len(n.members))
		for _, member := range n.members {
			m[member.name] = member.value.value()
		}
		return m
	case array:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.value()
		}
		return items
	case number:
		return json.Number(n.text)
	case boolean:
		return n.text == "true"
	case null:
		return nil
	case text:
	}
	return n.text
}

// cursor is a node and its place; reading through it collects problems.
type cursor struct {
	*node
	doc     *document
	pointer string
}

// document is one file being read.
type document struct {
	file  string
	found *appdef.Problems // those of the whole load
}

func (d *document) place(pointer string, line int) appdef.Place {
	return appdef.Place{File: d.file, Pointer: pointer, Line: line}
}

func (d *document) add(p appdef.Problem) { *d.found = append(*d.found, p) }

func (c cursor) place() appdef.Place { return c.doc.place(c.pointer, c.line) }

func (c cursor) bad(got, want, hint string)  { c.doc.add(c.place().Problem(got, want, hint)) }
func (c cursor) warn(got, want, hint string) { c.doc.add(c.place().Warning(got, want, hint)) }

// at is the place of a member, whether it exists or not.
func (c cursor) at(name string) appdef.Place {
	if m := c.member(name); m != nil {
		return c.doc.place(c.pointer+appdef.Pointer(name), m.line)
	}
	return c.place()
}

// get finds a member that exists and is not null.
func (c cursor) get(name string) (cursor, bool) {
	m := c.member(name)
	if m == nil || m.kind == null {
		return cursor{}, false
	}
	return cursor{node: m, doc: c.doc, pointer: c.pointer + appdef.Pointer(name)}, true
}

// text reads a scalar member as its text; "" if it does not exist.
func (c cursor) text(name string) string {
	m, ok := c.get(name)
	if !ok {
		return ""
	}
	if !m.scalar() {
		m.bad(string(m.kind), "a text", "")
		return ""
	}
	return m.node.text
}

// textQuiet is text for a member that was read and judged before.
func (c cursor) textQuiet(name string) string {
	if m, ok := c.get(name); ok && m.scalar() {
		return m.node.text
	}
	return ""
}

// required is text for a member that must exist and not be empty.
func (c cursor) required(name string) string {
	if m, ok := c.get(name); !ok {
		c.bad("no "+name, "one", "")
	} else if m.scalar() && m.node.text == "" {
		m.bad(`""`, "a text", "")
	}
	return c.text(name)
}

// whole reads a whole number of at least least; fallback without the member.
func (c cursor) whole(name string, least, fallback int) int {
	value := c.text(name)
	if value == "" {
		return fallback
	}
	n, err := appdef.ParseInt(value)
	if err != nil || n < least {
		c.doc.add(c.at(name).Problem(appdef.Quote(value), "a whole number, "+strconv.Itoa(least)+" or more", ""))
		return fallback
	}
	return n
}

// object reads a member that is an object.
func (c cursor) object(name string) (cursor, bool) {
	m, ok := c.get(name)
	if !ok {
		return cursor{}, false
	}
	if m.kind != object {
		m.bad(string(m.kind), "an object", "")
		return cursor{}, false
	}
	return m, true
}

// list reads a member that is a list, item by item.
func (c cursor) list(name string) []cursor {
	m, ok := c.get(name)
	if !ok {
		return nil
	}
	if m.kind != array {
		m.bad(string(m.kind), "a list", "")
		return nil
	}
	return m.each()
}

// each is the items of a list.
func (c cursor) each() []cursor {
	items := make([]cursor, len(c.items))
	for i, item := range c.items {
		items[i] = cursor{node: item, doc: c.doc, pointer: c.pointer + appdef.Pointer(strconv.Itoa(i))}
	}
	return items
}

// objects is list for a list of objects; other items are reported and left out.
func (c cursor) objects(name string) []cursor {
	m, ok := c.get(name)
	if !ok {
		return nil
	}
	if m.kind != array {
		m.bad(string(m.kind), "a list", "")
		return nil
	}
	return m.eachObject()
}

// eachObject is the objects of a list; other items are reported and left out.
func (c cursor) eachObject() []cursor {
	var objects []cursor
	for _, item := range c.each() {
		if item.kind != object {
			item.bad(string(item.kind), "an object", "")
			continue
		}
		objects = append(objects, item)
	}
	return objects
}

// knows warns about members with other names: Slider ignores them, so a misspelt name would stay unnoticed.
func (c cursor) knows(names []string) {
	for _, m := range c.members {
		known := false
		for _, name := range names {
			known = known || name == m.name
		}
		if !known {
			hint := appdef.DidYouMean(m.name, names)
			if hint == "" {
				hint = "it is ignored"
			}
			c.doc.add(c.at(m.name).Warning("unknown key "+appdef.Quote(m.name), "a key that Slider knows", hint))
		}
	}
}
