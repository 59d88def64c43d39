package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// source is the text of a policy: in which line each field stands, and what is wrong in it.
type source struct {
	path  string
	lines map[string]int // by field, such as mounts[0].path
	found []error
}

// bad notes what is wrong with a field. One that is missing has the line of what it is missing in.
func (s *source) bad(field, format string, args ...any) {
	line := 0
	for at := field; at != "" && line == 0; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		line = s.lines[at]
	}
	s.at(line, "%s: %w", field, fmt.Errorf(format, args...))
}

func (s *source) at(line int, format string, args ...any) {
	place := s.path
	if line > 0 {
		place = fmt.Sprintf("%s:%d", s.path, line)
	}
	s.found = append(s.found, fmt.Errorf("policy %s: %w", place, fmt.Errorf(format, args...)))
}

func (s *source) err() error { return errors.Join(s.found...) }

// decode reads a text into a policy. A key that stands twice is a slip: the first would be read past.
func (s *source) decode(text []byte, into *Policy) {
	node, problems := appdef.ReadJSON(s.path, text)
	for _, p := range problems {
		if p.Kind == appdef.RepeatedKey {
			field := strings.TrimPrefix(strings.ReplaceAll(p.Pointer, "/", "."), ".")
			s.at(p.Line, "%s: got it a second time, want it once", field)
			continue
		}
		s.at(p.Line, "got %s, want %s%s", p.Got, p.Want, also(p.Hint))
	}
	if node == nil {
		return
	}
	if node.Kind != appdef.JSONObject {
		s.at(node.Line, `got %s, want an object: {"version": 1, …}`, node.Kind)
		return
	}
	for _, m := range node.Members {
		into.has = append(into.has, m.Name)
	}
	s.value(node, "", reflect.ValueOf(into).Elem())
}

// also is a hint behind an error.
func also(hint string) string {
	if hint == "" {
		return ""
	}
	return "; " + hint
}

// value reads one value into a Go value, whose type says what is wanted.
func (s *source) value(n *appdef.JSONNode, field string, to reflect.Value) {
	s.lines[field] = n.Line
	if rules, ok := reflect.TypeAssert[*seccompRules](to.Addr()); ok && n.Kind == appdef.JSONText {
		rules.word(n.Text)
		return
	}
	switch to.Kind() { //nolint:exhaustive // those of Policy's fields
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		s.value(n, field, to.Elem())
	case reflect.Struct:
		if s.is(n, field, appdef.JSONObject, to) {
			s.members(n, field, to)
		}
	case reflect.Slice:
		if !s.is(n, field, appdef.JSONArray, to) {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), len(n.Items), len(n.Items)))
		for i, item := range n.Items {
			s.value(item, fmt.Sprintf("%s[%d]", field, i), to.Index(i))
		}
	case reflect.String:
		if s.is(n, field, appdef.JSONText, to) {
			to.SetString(n.Text)
		}
	case reflect.Bool:
		if s.is(n, field, appdef.JSONBoolean, to) {
			to.SetBool(n.Text == "true")
		}
	default: // the version
		if n.Kind != appdef.JSONNumber || n.Text != "1" {
			s.bad(field, "got %s, want 1", shown(n))
			return
		}
		to.SetInt(1)
	}
}

func (s *source) members(n *appdef.JSONNode, field string, to reflect.Value) {
	fields := map[string]reflect.Value{}
	var known []string
	for _, f := range reflect.VisibleFields(to.Type()) {
		if name := f.Tag.Get("json"); name != "" && name != "-" {
			fields[name], known = to.FieldByIndex(f.Index), append(known, name)
		}
	}
	for _, m := range n.Members {
		name := strings.TrimPrefix(field+"."+m.Name, ".")
		if to, ok := fields[m.Name]; ok {
			s.value(m.Value, name, to)
			continue
		}
		s.lines[name] = m.Value.Line
		s.bad(name, "no such field, want %s%s", appdef.OneOf(known, ""), also(appdef.DidYouMean(m.Name, known)))
	}
}

// is tells whether a node is of the kind that a field has.
func (s *source) is(n *appdef.JSONNode, field string, want any, to reflect.Value) bool {
	if n.Kind == want {
		return true
	}
	switch to.Interface().(type) {
	case seccompRules:
		s.bad(field, "got %s, want an object, %q or the path of a filter", shown(n), unconfined)
	case []string:
		s.bad(field, "got %s, want a list of texts, such as [\"…\"]", shown(n))
	case []Mount, []Root:
		s.bad(field, `got %s, want a list of objects, such as [{"path": "/data"}]`, shown(n))
	case Mount, Root:
		s.bad(field, `got %s, want an object, such as {"path": "/data"}`, shown(n))
	default:
		s.bad(field, "got %s, want %s", shown(n), want)
	}
	return false
}

// shown is a value as a message names it.
func shown(n *appdef.JSONNode) string {
	switch {
	case n.Kind == appdef.JSONText:
		return "the text " + appdef.Quote(n.Text)
	case n.Scalar():
		return n.Text
	}
	return string(n.Kind)
}
