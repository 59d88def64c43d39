package main

import (
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

const packageLong = `The way of an app package, from its first file to a package that others fetch and trust:

  muster package init NAME            make a skeleton that runs
  muster package lint DIR             report what is wrong or will surprise, and how to repair it
  muster package build DIR -o FILE    pack an archive: the same bytes from the same files
  muster package sign FILE --key KEY  write a signature beside it, in minisign's format
  muster package push FILE URL        copy the archive and its signature to a store

Exits with 64 when the command line is wrong, with 65 when a file is (a package that cannot be read, a
definition with errors, a signature that does not match), with 69 when a URL cannot be reached, and
with 77 when this host's policy refuses the package.`

// newPackage is the parent of the author's verbs.
func newPackage(s console.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "package", Short: "Make, check, sign, ship and fetch app packages", Long: packageLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("package: no verb %q; muster package --help lists them", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(
		newPackageInit(s), newPackageBuild(s), newPackageFetch(s), newPackageInspect(s), newPackageKeygen(s),
		newPackageLint(s), newPackageLs(s), newPackageModernize(s), newPackagePush(s), newPackageSign(s),
		newPackageVerify(s),
	)
	return cmd
}
