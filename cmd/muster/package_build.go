package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/ship"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type packageBuildFlags struct {
	out     string
	noCheck bool
	verbose bool
	json    bool
}

func newPackageBuild(s console.Streams) *cobra.Command {
	f := packageBuildFlags{}
	cmd := &cobra.Command{
		Use: "build DIR -o FILE", Short: "Pack a folder: the same bytes from the same files", Args: exactly("DIR"),
		Long: `Packs the folder DIR as FILE: .zip, .tar.gz, .tgz or .tar.zst. With one version of muster the same
files give the same bytes: entries are sorted, belong to nobody, have mode 0644 or 0755, and one time:
SOURCE_DATE_EPOCH (seconds since 1970), else the earliest that the format can express. FILE is written
completely or not at all. A FILE.minisig of an earlier, different FILE is removed.

Version control's folders, __pycache__, *.pyc, editors' backups, FILE and its signature are left out.
What no agent would accept is refused (65): links that leave the folder, devices, a definition with
errors. Scripts are not checked: that is what muster package lint does.

The sha256 is printed as sha256sum(1) prints it.`,
		Example: "  muster package build myapp -o myapp-1.0.0.zip\n  muster package build myapp -o myapp.tar.zst " +
			"--verbose | sha256sum -c",
		RunE: func(cmd *cobra.Command, args []string) error { return f.build(cmd.Context(), s, args[0]) },
	}
	set := cmd.Flags()
	set.StringVarP(&f.out, "output", "o", "", "`FILE` to write")
	set.BoolVar(&f.noCheck, "no-check", false, "pack even if the definition has errors")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "list packed and skipped files on stderr")
	set.BoolVar(&f.json, "json", false, "print {file, sha256, bytes, files, left_out} as JSON")
	return cmd
}

func (f *packageBuildFlags) build(ctx context.Context, s console.Streams, dir string) error {
	if f.out == "" {
		return exit.Usagef("package build: -o FILE is missing")
	}
	if info, err := os.Stat(dir); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("package build: %w", err))
	} else if !info.IsDir() {
		return exit.With(exit.Definition, fmt.Errorf("package build %s: got a file, want the folder of a package", dir))
	}
	if !f.noCheck {
		l, found, err := (&openapp.Choices{}).Validate(ctx, dir)
		if err != nil {
			return err
		}
		l.Close()
		found.Warnings().Print(s.Err)
		if bad := exit.OfProblems(found); bad != nil {
			return bad
		}
	}
	built, err := ship.Build(dir, f.out, os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	f.report(s, built)
	if f.json {
		return console.PrintJSON(s.Out, built)
	}
	fmt.Fprintf(s.Out, "%s  %s\n", built.SHA256, f.out)
	return nil
}

// report names on stderr what was packed, left out and removed.
func (f *packageBuildFlags) report(s console.Streams, built ship.Built) {
	if built.Removed != "" {
		fmt.Fprintf(s.Err, "removed %s: it was of the former file; muster package sign signs the new one\n",
			built.Removed)
	}
	switch {
	case f.verbose:
		for _, name := range built.Files {
			fmt.Fprintf(s.Err, "packed %s\n", packages.Printable(name))
		}
		for _, name := range built.LeftOut {
			fmt.Fprintf(s.Err, "left out %s\n", packages.Printable(name))
		}
	case len(built.LeftOut) > 0:
		fmt.Fprintf(s.Err, "left out: %s\n", packages.Printable(firstFew(built.LeftOut)))
	}
}

// firstFew names some and counts the rest.
func firstFew(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more (--verbose names them)", strings.Join(names[:few], ", "), len(names)-few)
}
