package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages/inspect"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

func newPackageInspect(s console.Streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "inspect APP", Short: "Print what a package contains: components, exports, files, digest, signature",
		Args: exactly("APP"),
		Long: `Prints what a package contains: its components with instances, memory, role and the source of their
command, its exports, its files with size and sha256. For an archive it prints the archive's own
sha256 and the name in its signature; only muster package verify checks the signature. Exits with 65
when it is no package, or when its definition has errors for muster validate: they are on stderr.`,
		Example:           "  muster package inspect catalog:tensorflow\n  muster package inspect app.zip --json",
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspectPackage(cmd.Context(), s, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

func inspectPackage(ctx context.Context, s console.Streams, ref string, asJSON bool) error {
	as := openapp.Choices{Signed: true, Progress: s.Err}
	l, problems, err := as.Validate(ctx, ref)
	if err != nil {
		return err
	}
	defer l.Close()
	problems.Warnings().Print(s.Err)
	found, err := inspect.Package(ref, l.App, l.Package, l.Signature)
	switch {
	case err != nil:
		return exit.With(exit.Definition, err)
	case asJSON:
		err = console.PrintJSON(s.Out, found)
	default:
		err = found.Print(s.Out)
	}
	return cmp.Or(err, exit.OfProblems(problems))
}
