package lint

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/shim/plan"
)

// Result is the answer of muster package lint --json.
type Result struct {
	Version  int             `json:"version"`
	OK       bool            `json:"ok"`
	Problems appdef.Problems `json:"problems"`
	Fixes    []fix           `json:"fixes"`
}

// fix is one file that can be mended, or was.
type fix struct {
	File    string   `json:"file"`
	Changes []string `json:"changes"`
	Diff    string   `json:"diff"`
	Written bool     `json:"written"`
}

// Run judges a package. With write, it first mends the files of the package's folder; the problems are those that are
// left.
func Run(ctx context.Context, pkg *packages.Package, write bool) (Result, error) {
	out := Result{Version: 1, Fixes: []fix{}}
	fixes := slider.Fixes(pkg.FS)
	if write {
		if err := writeFixes(pkg.Path, fixes); err != nil {
			return out, err
		}
	}
	for _, fixed := range fixes {
		text := diff.Diff(fixed.Name, fixed.Before, fixed.Name+" (mended)", fixed.After)
		out.Fixes = append(out.Fixes, fix{File: fixed.Name, Changes: fixed.Changes, Diff: string(text), Written: write})
	}
	out.Problems = problems(ctx, pkg)
	out.OK = len(out.Problems.Errors()) == 0
	return out, nil
}

// problems are all that is known to be wrong with a package, and the advice on it.
func problems(ctx context.Context, pkg *packages.Package) appdef.Problems {
	app, found := slider.Load(pkg.FS, slider.Options{Name: pkg.Name, Strict: true})
	if len(found.Errors()) == 0 {
		vars := map[string]string{}
		for _, name := range appdef.ClientNames() { // the client that runs the package has values for them
			vars[name] = name
		}
		found = append(found, plan.Check(app, vars)...)
	}
	known := !slices.ContainsFunc(found, unread)
	scripts, unseen := readScripts(ctx, pkg, app, known)
	var values appdef.Problems
	if known { // else they may well be set where nobody can read it
		values = slider.LintValues(app, scripts, told())
	}
	found = slices.Concat(found, unseen, slider.Lint(pkg.FS, app), slider.LintScripts(pkg.FS, app, scripts), values,
		javaHomes(app)).Sort()
	if found == nil {
		return appdef.Problems{}
	}
	return found
}

// unread tells whether a problem is that of a document as a whole: it could not be read, or is not there.
func unread(p appdef.Problem) bool {
	return p.Severity == appdef.SeverityError && p.Pointer == "" && p.Kind != appdef.RepeatedKey
}

// Print writes the result for people.
func (r Result) Print(out io.Writer) {
	r.Problems.Print(out)
	written := false
	for _, f := range r.Fixes {
		fmt.Fprint(out, f.Diff)
		written = f.Written
	}
	switch n := appdef.Counted(len(r.Fixes), "file"); {
	case written:
		fmt.Fprintf(out, "mended: %s\n", n)
	case len(r.Fixes) > 0:
		fmt.Fprintf(out, "--fix mends %s so\n", n)
	case len(r.Problems) == 0:
		fmt.Fprintln(out, "ok: nothing to say")
	}
}
