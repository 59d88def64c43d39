package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type packageLintFlags struct {
	fix  bool
	json bool
}

// packageLint is the answer of muster package lint --json.
type packageLint struct {
	Version  int             `json:"version"`
	OK       bool            `json:"ok"`
	Problems appdef.Problems `json:"problems"`
	Fixes    []packageFix    `json:"fixes"`
}

// packageFix is one file that can be mended, or was.
type packageFix struct {
	File    string   `json:"file"`
	Changes []string `json:"changes"`
	Diff    string   `json:"diff"`
	Written bool     `json:"written"`
}

func newPackageLint(s streams) *cobra.Command {
	f := packageLintFlags{}
	cmd := &cobra.Command{
		Use: "lint APP", Short: "Tell an app package's author what is wrong, and mend what can be", Args: exactly("APP"),
		Example: `  muster package lint DIR
  muster package lint DIR --fix`,
		Long: `Judges APP (a folder, an archive or catalog:NAME) more strictly than Slider and muster validate do, and advises: files
that are missing or not executable, CRLF and byte order marks, exports and ports that nobody sees, templates that need
jinja2, and scripts: what Python 3 refuses, what only Python 2 has, a class without start or status, a template that is
not there. For them the python3 of this host reads package/scripts; nothing of the package is run. Problems are printed
as muster validate prints them; then, as a diff, what can be mended in one way: slips in keys that have one neighbour, a
missing schemaVersion, numbers where Slider has texts, letter case. --fix writes that into the folder; comments and order
stay.

Ends with 65 when errors are left.`,
		ValidArgsFunction: completeApp,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.lint(cmd.Context(), s, args[0]) },
	}
	cmd.Flags().BoolVar(&f.fix, "fix", false, "write what can be mended; APP must be a folder")
	cmd.Flags().BoolVar(&f.json, "json", false, "print {ok, problems, fixes} as JSON")
	return cmd
}

func (f *packageLintFlags) lint(ctx context.Context, s streams, ref string) error {
	pkg, ref, err := openapp.OpenPackage(ctx, ref)
	if err != nil {
		return err
	}
	defer pkg.Close()
	if f.fix && !pkg.Folder {
		return exit.Usagef("package lint %s: --fix wants a folder; unpack it first", ref)
	}
	fixes := slider.Fixes(pkg.FS)
	out := packageLint{Version: 1, Fixes: []packageFix{}}
	if f.fix {
		if err := writeFixes(pkg.Path, fixes); err != nil {
			return exit.With(exit.Definition, fmt.Errorf("package lint %s: %w", ref, err))
		}
	}
	for _, fixed := range fixes {
		text := diff.Diff(fixed.Name, fixed.Before, fixed.Name+" (mended)", fixed.After)
		out.Fixes = append(out.Fixes, packageFix{File: fixed.Name, Changes: fixed.Changes, Diff: string(text), Written: f.fix})
	}
	out.Problems = lintProblems(ctx, pkg) // what is left after the writing
	out.OK = len(out.Problems.Errors()) == 0
	if err := f.print(s.out, out); err != nil {
		return err
	}
	if !out.OK {
		return exit.Silent{Code: exit.Definition}
	}
	return nil
}

// lintProblems are all that is known to be wrong with a package, and the advice on it.
func lintProblems(ctx context.Context, pkg *packages.Package) appdef.Problems {
	app, found := slider.Load(pkg.FS, slider.Options{Name: pkg.Name, Strict: true})
	if len(found.Errors()) == 0 {
		l := &openapp.App{App: app, Vars: map[string]string{}}
		for _, name := range appdef.ClientNames() { // whoever runs it has them
			l.Vars[name] = name
		}
		found = append(found, firstPlans(l)...)
	}
	scripts, unseen := lintScripts(ctx, pkg, app)
	found = slices.Concat(found, unseen, slider.Lint(pkg.FS, app), slider.LintScripts(pkg.FS, app, scripts)).Sort()
	if found == nil {
		return appdef.Problems{}
	}
	return found
}

func (f *packageLintFlags) print(out io.Writer, result packageLint) error {
	if f.json {
		return printJSON(out, result)
	}
	printProblems(out, result.Problems)
	for _, fix := range result.Fixes {
		fmt.Fprint(out, fix.Diff)
	}
	switch n := counted(len(result.Fixes), "file"); {
	case len(result.Fixes) > 0 && f.fix:
		fmt.Fprintf(out, "mended: %s\n", n)
	case len(result.Fixes) > 0:
		fmt.Fprintf(out, "--fix mends %s so\n", n)
	case len(result.Problems) == 0:
		fmt.Fprintln(out, "ok: nothing to say")
	}
	return nil
}

// writeFixes puts the mended files of a folder in place.
func writeFixes(dir string, fixes []slider.Fixed) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, fixed := range fixes {
		if err := writeFixed(root, fixed.Name, fixed.After); err != nil {
			return fmt.Errorf("mend %s: %w", fixed.Name, err)
		}
	}
	return nil
}

// writeFixed puts a file in the place of another at once, with its mode. What is no plain file is left alone, and so is
// what a link of the package leads to outside.
func writeFixed(root *os.Root, name string, data []byte) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no plain file; write to the one that it leads to")
	}
	part := path.Join(path.Dir(name), ".muster-lint-"+rand.Text())
	f, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	return nil
}
