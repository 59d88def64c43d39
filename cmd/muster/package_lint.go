package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages/lint"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type packageLintFlags struct {
	fix  bool
	json bool
}

func newPackageLint(s console.Streams) *cobra.Command {
	f := packageLintFlags{}
	cmd := &cobra.Command{
		Use: "lint APP", Short: "Tell an app package's author what is wrong, and mend what can be",
		Args: exactly("APP"),
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
	cmd.Flags().BoolVar(&f.fix, "fix", false, "write the repairs that are possible; APP must be a folder")
	cmd.Flags().BoolVar(&f.json, "json", false, "print {ok, problems, fixes} as JSON")
	return cmd
}

func (f *packageLintFlags) lint(ctx context.Context, s console.Streams, ref string) error {
	pkg, ref, err := openapp.OpenPackage(ctx, ref)
	if err != nil {
		return err
	}
	defer pkg.Close()
	if f.fix && !pkg.Folder {
		return exit.Usagef("package lint %s: --fix wants a folder; unpack it first", ref)
	}
	result, err := lint.Run(ctx, pkg, f.fix)
	if err != nil {
		return exit.With(exit.Definition, fmt.Errorf("package lint %s: %w", ref, err))
	}
	if f.json {
		err = console.PrintJSON(s.Out, result)
	} else {
		result.Print(s.Out)
	}
	if err == nil && !result.OK {
		return exit.Silent{Code: exit.Definition}
	}
	return err
}
