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
		Use: "lint APP", Short: "Check an app package, and repair what can be repaired",
		Args: exactly("APP"),
		Example: `  muster package lint DIR
  muster package lint DIR --fix`,
		Long: `Checks APP (a folder, an archive or catalog:NAME) more strictly than Slider and muster validate, and
gives advice on files that are missing or not executable, CRLF and byte order marks, exports and ports
that nobody uses, templates that need jinja2, and scripts: errors in Python 3, features of Python 2, a
class without start or status, a missing template. This host's python3 parses package/scripts; nothing
of the package is run. Problems are printed as muster validate prints them. A diff then shows what can
be repaired in only one way: misspelt keys, a missing schemaVersion, numbers where Slider has texts,
letter case. --fix writes these repairs into the folder, and keeps comments and order.

Exits with 65 when errors are left.`,
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
