package appdef

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPlaceholderTable: what the table names the resolver knows, in lower case where the table says so.
func TestPlaceholderTable(t *testing.T) {
	a := App{Config: map[string]string{"site.app.key": "v"}, Components: []Component{{Name: "ps", Config: map[string]string{"site.app.key": "v", prefixKey: "p"}}}}
	r := Resolver{
		App: &a, Component: "ps", User: "U", Cluster: "C", ContainerID: "I", Tag: 1, Host: "H", WorkRoot: "W", LogRoot: "L",
		Vars: map[string]string{}, Hosts: map[string][]string{"ps": {"H"}},
	}
	for _, name := range ClientNames() {
		r.Vars[name] = "V"
	}
	fill := strings.NewReplacer("COMPONENT.", "ps.", "COMPONENT_HOST", "ps_HOST", "DICTIONARY", "app", "KEY", "key")
	for _, p := range PlaceholderTable() {
		name := fill.Replace(p.Name)
		if p.Client != slices.Contains(ClientNames(), name) {
			t.Errorf("%s: client: got %t, ClientNames says otherwise", p.Name, p.Client)
		}
		if strings.HasSuffix(name, portSuffix) {
			if text, err := parsePort("${"+name+"}", "ps"); err != nil || len(text.Claims) != 1 {
				t.Errorf("%s: got %+v, %v, want one port", p.Name, text, err)
			}
			continue
		}
		if _, _, site := siteKey(name); !site && !(&validation{app: &a}).known(name) {
			t.Errorf("%s: validation takes it for unknown", p.Name)
		}
		if out, missing := r.Expand("${" + name + "}"); len(missing) > 0 || out == "" {
			t.Errorf("%s: the resolver does not know it: %q", p.Name, out)
		}
		if _, ok := r.Lookup(name + ".lc"); ok != p.Lower {
			t.Errorf("%s.lc: the resolver knows it: %t, the table: %t", p.Name, ok, p.Lower)
		}
	}
}

// TestPlaceholderTableIsWhole looks into the resolver's own switches: each name in them is in the table.
func TestPlaceholderTableIsWhole(t *testing.T) {
	var table []string
	for _, p := range PlaceholderTable() {
		table = append(table, p.Name)
	}
	fixed := cases(t, "resolver.go", "fixed")
	if len(fixed) < 10 {
		t.Fatalf("found only the cases %v", fixed)
	}
	for _, name := range append(fixed, ClientNames()...) {
		if !slices.Contains(table, name) {
			t.Errorf("the resolver knows %s, the table does not", name)
		}
	}
	if injected, known := cases(t, "resolver.go", "injected"), injectedKeys(); len(injected) != len(known) {
		t.Errorf("the resolver sets %v, InjectedKeys has %v", injected, known)
	}
	for _, k := range InjectedTable() {
		if k.Value == "" {
			t.Errorf("%s has no value", k.Key)
		}
	}
}

// cases are the texts that a function's switches compare with.
func cases(t *testing.T, file, function string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok {
				return true
			}
			for _, e := range clause.List {
				if text, ok := e.(*ast.BasicLit); ok {
					name, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					found = append(found, name)
				}
			}
			return true
		})
	}
	return found
}
