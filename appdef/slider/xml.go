package slider

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Metainfo as XML is the same document with wrappers: the list `exports` is an element <exports> with one <export> for
// each item. Slider also finds most items without the wrapper. It becomes the tree of the same metainfo as JSON, so
// pointers are those of the JSON.

// wrappers are the elements that hold a list; the name of an item is that of the list without its s.
var wrappers = map[string]bool{
	"exportGroups": true, "exports": true, "commandOrders": true, "components": true, "componentExports": true,
	"commands":    true,
	"configFiles": true, "osSpecifics": true, "packages": true, "dockerContainers": true, "mounts": true, "ports": true,
	"inputFiles": true,
}

// bare are the items that Slider also finds without their wrapper. `command` is not among them: a commandOrder has one
// that is a text.
var bare = map[string]bool{
	"exportGroup": true, "export": true, "commandOrder": true, "component": true, "componentExport": true,
	"configFile": true, "osSpecific": true, "package": true,
}

// element is one XML element with its content.
type element struct {
	name     string
	line     int
	text     string
	children []*element
}

// parseXML reads metainfo.xml. It returns nil if the document is unreadable.
func (d *document) parseXML(data []byte) *node {
	root := d.elements(data)
	if root == nil {
		return nil
	}
	if root.name != "metainfo" {
		d.add(d.place("", root.line).Problem("the element <"+root.name+">", "<metainfo>", ""))
		return nil
	}
	return d.fromXML(root, "")
}

// elements reads a whole XML document; nil if it is none.
func (d *document) elements(data []byte) *element {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.CharsetReader = charset
	top := &element{}
	open := []*element{top}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.add(d.xmlProblem(err))
			return nil
		}
		at, _ := dec.InputPos()
		inner := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if len(open) > deepest {
				d.add(d.place("", at).
					Problem(fmt.Sprintf("more than %d levels of elements", deepest), "a definition", ""))
				return nil
			}
			child := &element{name: t.Name.Local, line: at}
			inner.children = append(inner.children, child)
			open = append(open, child)
		case xml.EndElement:
			inner.text = strings.TrimSpace(inner.text)
			open = open[:len(open)-1]
		case xml.CharData:
			inner.text += string(t)
		}
	}
	if len(top.children) != 1 {
		d.add(d.place("", 1).Problem(fmt.Sprintf("%d elements at the top", len(top.children)), "one", ""))
		return nil
	}
	return top.children[0]
}

func (d *document) xmlProblem(err error) appdef.Problem {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return d.place("", syntax.Line).Problem(syntax.Msg, "XML", "")
	}
	if _, encoding, ok := strings.Cut(err.Error(), "the encoding "); ok {
		return d.place("", 1).Problem("the encoding "+encoding, "UTF-8, ISO-8859-1 or US-ASCII", "")
	}
	return d.place("", 0).Problem(strings.TrimPrefix(err.Error(), "xml: "), "XML", "")
}

// charset decodes the two other encodings that metainfo files declare.
func charset(label string, input io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "us-ascii", "ascii":
		return input, nil
	case "iso-8859-1", "latin1":
		raw, err := io.ReadAll(input)
		runes := make([]rune, len(raw))
		for i, b := range raw {
			runes[i] = rune(b)
		}
		return strings.NewReader(string(runes)), err
	}
	return nil, fmt.Errorf("the encoding %s", appdef.Quote(label))
}

func (d *document) fromXML(e *element, pointer string) *node {
	n := &node{line: e.line}
	switch {
	case wrappers[e.name]:
		n.kind = array
		d.xmlItems(n, e, pointer)
	case len(e.children) == 0:
		n.kind, n.text = text, e.text
	default:
		n.kind = object
		d.xmlMembers(n, e, pointer)
	}
	return n
}

func (d *document) xmlItems(n *node, e *element, pointer string) {
	item := strings.TrimSuffix(e.name, "s")
	for _, child := range e.children {
		if child.name != item {
			d.add(d.place(pointer, child.line).Warning("the element <"+child.name+">", "<"+item+">", "it is ignored"))
			continue
		}
		n.items = append(n.items, d.xmlItem(child, pointer+appdef.Pointer(fmt.Sprint(len(n.items)))))
	}
}

// xmlItem reads an item of a list: an object, even if it is empty.
func (d *document) xmlItem(e *element, pointer string) *node {
	n := &node{kind: object, line: e.line}
	d.xmlMembers(n, e, pointer)
	return n
}

func (d *document) xmlMembers(n *node, e *element, pointer string) {
	for _, child := range e.children {
		name := child.name
		if bare[name] {
			list := n.member(name + "s")
			if list == nil {
				list = &node{kind: array, line: child.line}
				n.members = append(n.members, member{name: name + "s", value: list})
			}
			list.items = append(list.items, d.xmlItem(child,
				pointer+appdef.Pointer(name+"s", fmt.Sprint(len(list.items)))))
			continue
		}
		value := d.fromXML(child, pointer+appdef.Pointer(name))
		if first := n.member(name); first != nil { // the last one counts, as in Slider
			d.add(d.place(pointer+appdef.Pointer(name), child.line).Warning(
				fmt.Sprintf("a second <%s> at line %d", name,
					child.line), "one", fmt.Sprintf("it replaces the one at line %d", first.line)).
				As(appdef.RepeatedKey))
			*first = *value
			continue
		}
		n.members = append(n.members, member{name: name, value: value})
	}
}

// dictionary reads configuration/<dict>.xml, Hadoop's form of properties. Only name and value count (Slider's
// DefaultConfigParser): `final` and includes have no effect, and a property with an empty value is none.
func (d *document) dictionary(data []byte) map[string]string {
	root := d.elements(data)
	if root == nil {
		return nil
	}
	if root.name != "configuration" {
		d.add(d.place("", root.line).Problem("the element <"+root.name+">", "<configuration>", ""))
		return nil
	}
	values, lines := map[string]string{}, map[string]int{}
	for _, property := range root.children {
		name, value := "", ""
		for _, child := range property.children {
			switch child.name {
			case "name":
				name = child.text
			case "value":
				value = child.text
			}
		}
		if name == "" || value == "" {
			continue
		}
		if first := lines[name]; first > 0 {
			d.add(d.place("", property.line).Warning("a second property "+appdef.Quote(name), "one",
				fmt.Sprintf("it replaces the one at line %d", first)).As(appdef.RepeatedKey))
		}
		values[name], lines[name] = value, property.line
	}
	return values
}
