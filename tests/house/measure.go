// Package house measures how the code is laid out: circles of files, wide structs, names exported for nobody, contexts
// that nobody owns, long lines. Its test holds the figures, so that a change cannot make the house harder to live in
// unseen.
package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Room is one package without its tests.
type Room struct {
	Path       string // below the module
	Files      map[string]bool
	Lines      int
	Circle     int            // files of the largest group that all reach each other by what they use
	Behaviour  map[string]int // fields of each struct that has methods with a pointer receiver
	Values     map[string]int // fields of every other struct
	Background []string       // uses of context.Background and context.TODO without a comment beside them
	Contexts   int            // all uses of them
	Unused     []string       // exported names of the package that no other package of the module uses
	Wide       []string       // lines over Columns columns
	Long       map[string]int // lines of functions longer than LongFunction
}

// Columns is how wide a line may be, with tabs of TabWidth.
const (
	Columns      = 120
	TabWidth     = 4
	LongFunction = 80
)

// Measure reads the module in dir. Its tests, scripts and test programs are left out, but they count as users of what
// a room exports.
func Measure(dir string) ([]Room, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	pkgs, err := packages.Load(&packages.Config{
		Dir: dir, Fset: fset, Tests: true,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedModule |
			packages.NeedImports | packages.NeedDeps | packages.NeedForTest,
	}, "./...")
	if err != nil {
		return nil, err
	}
	used := uses(fset, pkgs)
	var rooms []Room
	for _, p := range pkgs {
		if strings.HasSuffix(p.ID, ".test") {
			continue // go's own main of a test, which does not always type-check
		}
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
		path := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/")
		if p.ForTest != "" || outside(path) {
			continue
		}
		r, err := room(fset, p, dir, path, used)
		if err != nil {
			return nil, err
		}
		rooms = append(rooms, r)
	}
	return rooms, nil
}

func outside(path string) bool {
	return path == "tests" || strings.HasPrefix(path, "tests/") || strings.HasPrefix(path, "scripts/")
}

// place is where a name is declared; packages are checked twice, with and without their tests.
type place string

func placeOf(fset *token.FileSet, o types.Object) place {
	return place(fset.Position(o.Pos()).String())
}

// uses are the places of all names that some other package of the module uses.
func uses(fset *token.FileSet, pkgs []*packages.Package) map[place]bool {
	used := map[place]bool{}
	for _, p := range pkgs {
		for _, o := range p.TypesInfo.Uses {
			if o != nil && o.Pkg() != nil && o.Pos().IsValid() &&
				o.Pkg().Path() != strings.TrimSuffix(p.PkgPath, "_test") {
				used[placeOf(fset, o)] = true
			}
		}
	}
	return used
}

func room(fset *token.FileSet, p *packages.Package, dir, path string, used map[place]bool) (Room, error) {
	r := Room{
		Path: path, Files: map[string]bool{}, Behaviour: map[string]int{}, Values: map[string]int{},
		Long: map[string]int{},
	}
	methods := map[string]bool{}
	for _, f := range p.Syntax {
		name := fset.Position(f.Package).Filename
		if rel, err := filepath.Rel(dir, name); err != nil || strings.HasPrefix(rel, "..") {
			continue // cgo's own
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return r, err
		}
		r.Files[name] = true
		r.measureLines(name, string(text))
		r.measureFile(fset, f, string(text), methods)
	}
	for name := range methods {
		if n, ok := r.Values[name]; ok {
			delete(r.Values, name)
			r.Behaviour[name] = n
		}
	}
	for _, name := range p.Types.Scope().Names() {
		if token.IsExported(name) && path != "cmd/muster" && !used[placeOf(fset, p.Types.Scope().Lookup(name))] {
			r.Unused = append(r.Unused, name)
		}
	}
	r.Circle = circle(fset, p)
	return r, nil
}

func (r *Room) measureLines(name, text string) {
	lines := strings.Split(text, "\n")
	r.Lines += len(lines)
	for i, line := range lines {
		tag := strings.HasSuffix(line, "`") && strings.Contains(line, " `json:") // of a field: it cannot be broken
		if !tag && len(strings.ReplaceAll(line, "\t", strings.Repeat(" ", TabWidth))) > Columns {
			r.Wide = append(r.Wide, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
}

func (r *Room) measureFile(fset *token.FileSet, f *ast.File, text string, methods map[string]bool) {
	lines := strings.Split(text, "\n")
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				r.Values[n.Name.Name] = s.Fields.NumFields()
			}
		case *ast.FuncDecl:
			if name, ok := pointerReceiver(n); ok {
				methods[name] = true
			}
			if size := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1; size > LongFunction {
				r.Long[n.Name.Name] = size
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" &&
				(n.Sel.Name == "Background" || n.Sel.Name == "TODO") {
				r.Contexts++
				at := fset.Position(n.Pos())
				if !explained(lines, at.Line) {
					r.Background = append(r.Background, at.String())
				}
			}
		}
		return true
	})
}

// explained tells that a line of code has a comment behind it or on the line above.
func explained(lines []string, line int) bool {
	return strings.Contains(lines[line-1], "//") || line > 1 &&
		strings.HasPrefix(strings.TrimSpace(lines[line-2]), "//")
}

func pointerReceiver(f *ast.FuncDecl) (name string, ok bool) {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return "", false
	}
	star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return "", false
	}
	switch x := star.X.(type) {
	case *ast.Ident:
		return x.Name, true
	case *ast.IndexExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			return id.Name, true
		}
	}
	return "", false
}

// circle is the size of the largest group of the package's files that all reach each other by the names they use.
func circle(fset *token.FileSet, p *packages.Package) int {
	g := graph{uses: map[string]map[string]bool{}}
	for id, o := range p.TypesInfo.Uses {
		if o == nil || o.Pkg() != p.Types || !o.Pos().IsValid() {
			continue
		}
		if v, ok := o.(*types.Var); ok && !v.IsField() && o.Parent() != p.Types.Scope() {
			continue // a local name
		}
		g.add(fset.Position(id.Pos()).Filename, fset.Position(o.Pos()).Filename)
	}
	return g.largest()
}

// graph is which file uses which.
type graph struct {
	uses       map[string]map[string]bool
	index, low map[string]int
	open       []string
	most       int
}

func (g *graph) add(from, to string) {
	if from == to {
		return
	}
	if g.uses[from] == nil {
		g.uses[from] = map[string]bool{}
	}
	g.uses[from][to] = true
}

// largest is the size of the largest strongly connected component (Tarjan, 1972).
func (g *graph) largest() int {
	g.index, g.low = map[string]int{}, map[string]int{}
	for v := range g.uses {
		if g.index[v] == 0 {
			g.visit(v)
		}
	}
	return g.most
}

func (g *graph) visit(v string) {
	g.index[v] = len(g.index) + 1
	g.low[v] = g.index[v]
	g.open = append(g.open, v)
	for w := range g.uses[v] {
		switch {
		case g.index[w] == 0:
			g.visit(w)
			g.low[v] = min(g.low[v], g.low[w])
		case g.isOpen(w):
			g.low[v] = min(g.low[v], g.index[w])
		}
	}
	if g.low[v] != g.index[v] {
		return
	}
	for size := 1; ; size++ {
		last := g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		if last == v {
			g.most = max(g.most, size)
			return
		}
	}
}

func (g *graph) isOpen(w string) bool { return slices.Contains(g.open, w) }
