package main

import (
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages/inspect"
	"github.com/muster-agent/muster/shim/exit"
)

func newPackageLs(s console.Streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "ls [catalog]", Short: "List the app packages of the catalog", Args: atMost("catalog"),
		Example:   "  muster package ls\n  muster package ls catalog --json",
		ValidArgs: []string{"catalog"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "catalog" {
				return exit.Usagef("package ls %s: want catalog, which is all there is to list", args[0])
			}
			return listCatalog(s, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print {packages} as JSON")
	return cmd
}

func listCatalog(s console.Streams, asJSON bool) error {
	list, err := inspect.Catalog()
	switch {
	case err != nil:
		return err
	case asJSON:
		return console.PrintJSON(s.Out, list)
	}
	return list.Print(s.Out)
}
