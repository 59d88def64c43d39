package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// withoutRace is the list of rooms that scripts/test runs without the race detector.
var withoutRace = regexp.MustCompile(`(?m)^pure=\(([^)]*)\)$`)

// TestNoGoroutineGoesUnwatched holds what scripts/test leaves the race detector out for: nothing is written in these rooms or in their
// tests that starts a goroutine. What a library starts for them it does not see: tests of some run programs, and os/exec copies
// what those say in goroutines of its own.
func TestNoGoroutineGoesUnwatched(t *testing.T) {
	text, err := os.ReadFile("../scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	list := withoutRace.FindSubmatch(text)
	if list == nil {
		t.Fatal("scripts/test: no list `pure=(…)`")
	}
	for folder := range strings.FieldsSeq(string(list[1])) {
		if r, ok := roomOf(folder); (!ok || !r.pure) && !strings.HasPrefix(folder, "tests/") {
			t.Errorf("scripts/test: %s is no pure room, and no test of the tree", folder)
		}
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("scripts/test: %s: no files: %v", folder, err)
		}
		for _, path := range files {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range goroutines(file) {
				t.Errorf("%s: starts a goroutine: scripts/test must have the race detector look at it", set.Position(at))
			}
		}
	}
}

// goroutines are the places where a file starts one: go statements, and what starts some for it.
func goroutines(file *ast.File) []token.Pos {
	starters := map[string]bool{"Parallel": true, "AfterFunc": true, "Go": true, "RunParallel": true}
	var found []token.Pos
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, n.Pos())
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && starters[sel.Sel.Name] {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

func TestGoroutines(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"none", "f()", 0},
		{"a go statement", "go f()", 1},
		{"of a group", "var wg sync.WaitGroup; wg.Go(f)", 1},
		{"beside other tests", "t.Parallel()", 1},
		{"inside", "for { if true { func() { go f() }() } }", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc x() {"+tt.body+"}", parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(goroutines(file)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
