package main

import (
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

const packageLong = `What the author of an app package needs, from the first file to a package that others fetch and trust:

  muster package init NAME            a skeleton that runs
  muster package lint DIR             all that is wrong or will surprise, with what would do
  muster package build DIR -o FILE    an archive: the same bytes from the same files
  muster package sign FILE --key KEY  a signature beside it, in minisign's format
  muster package push FILE URL        the archive and its signature where others find them

Ends with 64 when the command line is wrong, 65 when a file is: a package that cannot be read, a definition with
errors, a signature that does not fit; with 69 when a URL cannot be reached, and with 77 when the policy of this
host refuses the package.`

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
