package ui

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/remote"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/journal/timeline"
)

// openapi.json is made here and not in the program, of the types that answer.

var update = flag.Bool("update", false, "rewrite openapi.json")

type object = map[string]any

// operation is what the document says of a route.
type operation struct {
	route, summary string
	query          []parameter
	body           any    // whose type the body has; nil: none
	kind           string // of the answer; "": application/json
	answer         any    // whose type the answer has
}

type parameter struct{ name, kind, meaning string }

// errorAnswer is what every refusal has.
type errorAnswer struct {
	Error string `json:"error"`
}

var operations = []operation{
	{route: "GET /api/v1/apps", summary: "All apps, the newest first", answer: apps.Listing{}},
	{route: "GET /api/v1/apps/{app}", summary: "One app with its instances", answer: view.App{}},
	{
		route: "GET /api/v1/apps/{app}/logs/{instance}/{stream}", summary: "A log: stdout, stderr or agent", kind: "text/plain", answer: "",
		query: []parameter{{"tail", "integer", "how many of its last lines; 200 by default"}, {"follow", "boolean", "go on with what comes"}},
	},
	{route: "GET /api/v1/apps/{app}/timeline", summary: "Its generations, the phases of its instances, and where the time went", answer: timeline.Timeline{}},
	{
		route: "GET /api/v1/apps/{app}/samples", summary: "What its instances used", answer: curves{},
		query: []parameter{{"since", "integer", "seconds of Unix time; only what is younger"}},
	},
	{route: "GET /api/v1/apps/{app}/runs", summary: "Its runs in the history store, the newest first", answer: pastRuns{}},
	{route: "GET /api/v1/apps/{app}/runs/{run}", summary: "One of them with its instances, as at its end", answer: view.App{}},
	{
		route: "GET /api/v1/apps/{app}/runs/{run}/logs/{instance}/{stream}", summary: "A log of it, if it was kept", kind: "text/plain", answer: "",
		query: []parameter{{"tail", "integer", "how many of its last lines; 200 by default"}},
	},
	{route: "GET /api/v1/apps/{app}/runs/{run}/timeline", summary: "As for the app", answer: timeline.Timeline{}},
	{route: "GET /api/v1/apps/{app}/runs/{run}/samples", summary: "As for the app", answer: curves{}},
	{route: "GET /api/v1/live", summary: "All apps, as server-sent events: each change of what /api/v1/apps answers", kind: "text/event-stream", answer: ""},
	{route: "GET /api/v1/apps/{app}/live", summary: "One app, likewise", kind: "text/event-stream", answer: ""},
	{route: "GET /api/v1/me", summary: "Who asks, and whether that is one who may act", answer: caller{}},
	{route: "POST /api/v1/apps/{app}/stop", summary: "Stop it, as muster stop does", answer: said{}, body: struct {
		Grace *float64 `json:"grace,omitempty"`
		Save  bool     `json:"save,omitempty"`
	}{}},
	{route: "POST /api/v1/apps/{app}/save", summary: "Save its outputs, as muster save does", answer: said{}, body: struct{}{}},
	{route: "POST /api/v1/apps/{app}/flex", summary: "Have so many instances of components, as muster flex does", answer: said{}, body: struct {
		Counts map[string]int `json:"counts"`
	}{}},
	{route: "GET /api/v1/apps/{app}/flex", summary: "What a flex to the counts of the query, COMPONENT=COUNT, would do", answer: object{}},
	{route: "POST /api/v1/apps/{app}/instances/{instance}/signal", summary: "Signal its process", answer: said{}, body: struct {
		Signal string `json:"signal"`
	}{}},
	{
		route:   "POST /api/v1/apps/{app}/instances/{instance}/hold",
		summary: "Keep the container of its failed process for so many seconds from now on; 0: release it", answer: said{},
		body: struct {
			For float64 `json:"for"`
		}{},
	},
	{
		route:   "POST /api/v1/apps/{app}/key",
		summary: "A new key that logs in to its instances by ssh for so many seconds, 12 hours without a number", answer: issued{},
		body: struct {
			For float64 `json:"for,omitempty"`
		}{},
	},
	{
		route: "POST /api/v1/apps/{app}/instances/{instance}/terminal", summary: "A shell in its container; the answer is what the shell prints",
		kind: "application/octet-stream", answer: "", body: object{},
	},
	{route: "POST /api/v1/terminals/{id}", summary: "What is typed into a shell, and its size", answer: object{}, body: object{}},
	{route: "GET /api/v1/registry", summary: "Which registry this page shows, and who asks", answer: remote.Me{}},
	{route: "GET /api/v1/apps/{app}/registry", summary: "What the registry says of it, for verbs with --ui", answer: object{}},
	{route: "GET /api/v1/apps/{app}/definition", summary: "What it was made of, without commands and what is named as a secret", answer: object{}},
	{
		route: "GET /api/v1/apps/{app}/verdict", summary: "The verdict of a run, once it has one", answer: object{},
		query: []parameter{{"run", "string", "which run; the present one by default"}},
	},
	{route: "GET /api/v1/apps/{app}/states", summary: "What its agents say that answer", answer: object{}},
	{
		route: "POST /api/v1/apps/{app}/asks", summary: "Ask its conductor to stop, flex or save, for verbs with --ui", answer: remote.Asked{}, body: object{},
		query: []parameter{{"again", "boolean", "only where the registry has lost the request"}},
	},
	{route: "GET /api/v1/apps/{app}/instances/{instance}/agent/v1/logs/{name}", summary: "A log as its agent sends it", kind: "text/plain", answer: ""},
	{route: "GET /api/v1/apps/{app}/instances/{instance}/agent/v1/samples", summary: "What it used, as its agent says", answer: object{}},
	{route: "POST /api/v1/apps/{app}/instances/{instance}/agent/v1/{act}", summary: "Have its agent act: signal, hold, command, exec", answer: object{}, body: object{}},
	{route: "GET /api/v1/openapi.json", summary: "This document", answer: object{}},
}

// The document says of each route of the server's own what its types say.
func TestOpenAPI(t *testing.T) {
	want := describe(t)
	const file = "openapi.json"
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(want)); diff != "" {
		t.Errorf("%s is not what the types say (-update writes it anew): -have +want\n%s", file, diff)
	}
	if !bytes.Equal(openAPI, have) && !*update {
		t.Error("another document is served")
	}
}

// Every route that is served is described, and no other one. PAI's are PAI's.
func TestOpenAPIHasAllRoutes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	routes := regexp.MustCompile(`"((?:GET|POST|PUT|DELETE) /api/v1/[^"]*)"`)
	var served []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range routes.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "/jobs") {
				served = append(served, m[1])
			}
		}
	}
	var described []string
	for _, o := range operations {
		described = append(described, o.route)
	}
	slices.Sort(served)
	slices.Sort(described)
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("-served +described\n%s", diff)
	}
}

func describe(t *testing.T) []byte {
	t.Helper()
	types := map[string]reflect.Type{}
	reflector := jsonschema.Reflector{
		AllowAdditionalProperties: true, // later versions add fields
		DoNotReference:            false, ExpandedStruct: false,
		Namer: func(r reflect.Type) string {
			if r.Name() == "" {
				return ""
			}
			name := strings.ToUpper(r.Name()[:1]) + r.Name()[1:]
			if pkg := r.PkgPath(); pkg != "" {
				pkg = pkg[strings.LastIndex(pkg, "/")+1:]
				name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
			}
			types[name] = r
			return name
		},
		Mapper: func(r reflect.Type) *jsonschema.Schema {
			if r == reflect.TypeFor[registry.Class]() {
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "null"}}}
			}
			return nil
		},
	}
	schemas := object{}
	schemaOf := func(value any) object {
		r := reflect.TypeOf(value)
		if r.Kind() == reflect.String || r.Kind() == reflect.Map {
			return object{"type": map[bool]string{true: "string", false: "object"}[r.Kind() == reflect.String]}
		}
		s := plain(t, reflector.ReflectFromType(r))
		defs, _ := s["$defs"].(object)
		for name, def := range defs {
			schemas[name] = nullable(def.(object), types[name])
		}
		if r.Name() == "" {
			delete(s, "$defs")
			delete(s, "$schema")
			delete(s, "$id")
			return s
		}
		return object{"$ref": s["$ref"]}
	}
	paths := object{}
	failure := schemaOf(errorAnswer{})
	for _, o := range operations {
		method, path, _ := strings.Cut(o.route, " ")
		kind := o.kind
		if kind == "" {
			kind = "application/json"
		}
		op := object{"summary": o.summary, "responses": object{
			"200":     object{"description": "what was asked for", "content": object{kind: object{"schema": schemaOf(o.answer)}}},
			"default": object{"description": "why not", "content": object{"application/json": object{"schema": failure}}},
		}}
		var parameters []object
		for _, m := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
			parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		for _, q := range o.query {
			parameters = append(parameters, object{"name": q.name, "in": "query", "description": q.meaning, "schema": object{"type": q.kind}})
		}
		if parameters != nil {
			op["parameters"] = parameters
		}
		if o.body != nil {
			op["requestBody"] = object{"content": object{"application/json": object{"schema": schemaOf(o.body)}}}
			op["description"] = "Takes the right to act."
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = op
	}
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0", "info": object{
			"title": "muster ui", "version": "1",
			"description": "Apps as muster status shows them. Fields may be added; those that are here stay.",
		},
		"security": []object{{"token": []string{}}, {"session": []string{}}}, "paths": paths,
		"components": object{"schemas": schemas, "securitySchemes": object{
			"token":   object{"type": "http", "scheme": "bearer", "description": "a token that muster ui token has made"},
			"session": object{"type": "apiKey", "in": "cookie", "name": sessionCookie, "description": "of a browser that has opened the link, or logged in; the port of the address is behind the name, and over https __Host- before it"},
		}},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.ReplaceAll(text, []byte(`"#/$defs/`), []byte(`"#/components/schemas/`)), '\n')
}

func plain(t *testing.T, value any) (o object) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// nullable lets what a nil in Go is be null: pointers, lists and tables that are not left out.
func nullable(schema object, r reflect.Type) object {
	if r == nil || r.Kind() != reflect.Struct {
		return schema
	}
	properties, _ := schema["properties"].(object)
	for _, f := range reflect.VisibleFields(r) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		was, there := properties[name]
		if !there || strings.Contains(options, "omit") {
			continue
		}
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			properties[name] = object{"anyOf": []any{was, object{"type": "null"}}}
		}
		elem := f.Type
		if elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Pointer { // samples with gaps
			was.(object)["items"] = object{"anyOf": []any{was.(object)["items"], object{"type": "null"}}}
		}
	}
	return schema
}
