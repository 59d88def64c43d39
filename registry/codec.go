package registry

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"sync"
)

// later are the members of a record's JSON object that this build does not know, because a later build has added
// them: a JSON object with sorted names, empty for none. They are part of the value: who copies and changes a record
// writes them back.
type later string

// Encode is the JSON of a record with the members that this build does not know. Equal records give equal bytes.
func Encode(record any) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return restore(text, reflect.ValueOf(record))
}

// Decode reads what Encode of this or of another build wrote.
func Decode[T any](text []byte) (T, error) {
	var known T
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if strict.Decode(&known) == nil {
		if _, err := strict.Token(); err == io.EOF {
			return known, nil
		}
	}
	var record T
	if err := json.Unmarshal(text, &record); err != nil {
		return record, err
	}
	collect(text, reflect.ValueOf(&record))
	return record, nil
}

// restore adds the unknown members of v, and of the values in it, to the JSON of v.
func restore(text json.RawMessage, v reflect.Value) (json.RawMessage, error) {
	switch {
	case !keepsUnknown(v):
		return text, nil
	case v.Kind() == reflect.Pointer:
		return restore(text, v.Elem())
	case v.Kind() == reflect.Slice:
		var items []json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil {
			return nil, err
		}
		for i := range items {
			var err error
			if items[i], err = restore(items[i], v.Index(i)); err != nil {
				return nil, err
			}
		}
		return json.Marshal(items)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	for name, index := range fieldsOf(v.Type()) {
		if member, ok := members[name]; ok {
			var err error
			if members[name], err = restore(member, v.FieldByIndex(index)); err != nil {
				return nil, err
			}
		}
	}
	if unknown := unknownOf(v); unknown.IsValid() && unknown.String() != "" {
		if err := json.Unmarshal([]byte(unknown.String()), &members); err != nil {
			return nil, err
		}
	}
	return json.Marshal(members)
}

// keepsUnknown tells whether v, or a value in it, has unknown members.
func keepsUnknown(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // the other kinds have no fields
	case reflect.Pointer:
		return !v.IsNil() && keepsUnknown(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return false
		}
		for i := range v.Len() {
			if keepsUnknown(v.Index(i)) {
				return true
			}
		}
	case reflect.Struct:
		if !isRecord(v.Type()) {
			return false
		}
		for _, f := range v.Fields() {
			if f.Type() == reflect.TypeFor[later]() && f.String() != "" || keepsUnknown(f) {
				return true
			}
		}
	}
	return false
}

// collect stores the members of text that the type of v does not have, in v and in the values in it.
func collect(text json.RawMessage, v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the other kinds have no fields
	case reflect.Pointer:
		if !v.IsNil() {
			collect(text, v.Elem())
		}
	case reflect.Slice:
		var items []json.RawMessage
		if v.Type().Elem().Kind() == reflect.Struct && json.Unmarshal(text, &items) == nil {
			for i := range min(len(items), v.Len()) {
				collect(items[i], v.Index(i))
			}
		}
	case reflect.Struct:
		if isRecord(v.Type()) {
			collectMembers(text, v)
		}
	}
}

func collectMembers(text json.RawMessage, v reflect.Value) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return
	}
	fields := fieldsOf(v.Type())
	for name, member := range members {
		if index, ok := fields[name]; ok {
			collect(member, v.FieldByIndex(index))
			delete(members, name)
		}
	}
	for name := range members { // encoding/json takes a name in other letter case for the same
		for known := range fields {
			if strings.EqualFold(name, known) {
				delete(members, name)
			}
		}
	}
	if unknown := unknownOf(v); unknown.IsValid() && len(members) > 0 {
		if sorted, err := json.Marshal(members); err == nil {
			unknown.SetString(string(sorted))
		}
	}
}

// isRecord tells whether a struct is encoded field by field. A time is not.
func isRecord(t reflect.Type) bool { return !t.Implements(reflect.TypeFor[json.Marshaler]()) }

// unknownOf is the struct's own field of unknown members.
func unknownOf(v reflect.Value) reflect.Value {
	for _, f := range v.Fields() {
		if f.Type() == reflect.TypeFor[later]() {
			return f
		}
	}
	return reflect.Value{}
}

// layouts has what fieldsOf has found out, by type.
var layouts sync.Map

// fieldsOf are the fields of a struct by their names in JSON, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string][]int {
	if known, ok := layouts.Load(t); ok {
		fields, _ := known.(map[string][]int)
		return fields
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Index
	}
	layouts.Store(t, fields)
	return fields
}
