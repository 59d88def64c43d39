package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/modernize"
	"github.com/muster-agent/muster/shim/exit"
)

// newPackageModernize is the verb that brings a package's scripts to Python 3.
func newPackageModernize(s console.Streams) *cobra.Command {
	python, write := "python3", false
	cmd := &cobra.Command{
		Use: "modernize DIR", Short: "Show or make the changes that Python 2 scripts need", Args: exactly("DIR"),
		Long: `Runs 2to3 over package/scripts of the app package in DIR and prints the changes as a unified diff;
--write makes them. Scripts of Python 3, and links, are not changed. 2to3 is lib2to3 of Python 3.12 or
older, or its fork fissix for later ones (pip install fissix). Exits with 0, also when nothing needs
changing, with 64 when DIR is a file, and with 65 when a script cannot be parsed, or all are links.

2to3 changes the syntax, not the meaning: bytes that are not text, and divisions of integers, are left
to you. muster package lint names what else only Python 2 has, such as md5 and string.join.`,
		Example: "  muster package modernize . | less\n  muster package modernize . --write --python python3.11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return modernizePackage(cmd.Context(), s, args[0], python, write)
		},
	}
	cmd.Flags().StringVar(&python, "python", python, "`PYTHON` that has lib2to3 (3.12 or older) or fissix")
	cmd.Flags().BoolVar(&write, "write", write, "change the files")
	return cmd
}

func modernizePackage(ctx context.Context, s console.Streams, dir, python string, write bool) error {
	changes, err := modernize.Changes(ctx, python, dir)
	switch {
	case errors.Is(err, modernize.ErrNoFixers), errors.Is(err, modernize.ErrNoPython):
		return fmt.Errorf("%w; %s", err, modernize.Remedy(ctx, python))
	case errors.Is(err, modernize.ErrFile):
		return exit.Usagef("package modernize %s: got a file, want the folder of an app package; unpack an archive "+
			"first: muster package fetch %s --extract DIR", dir, dir)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return exit.With(exit.Definition, err)
	case errors.Is(err, modernize.ErrOnlyLinks):
		return exit.With(exit.Definition, err)
	case errors.Is(err, modernize.ErrNoScripts):
		return exit.With(exit.Definition, fmt.Errorf("%w; want the folder of an app package", err))
	case err != nil:
		return err
	}
	differ, problems := printChanges(s, changes)
	switch {
	case write:
		if err := modernize.Write(dir, changes); err != nil {
			return err
		}
	case differ:
		fmt.Fprintln(s.Err, "nothing was written; --write does it")
	}
	if !differ && problems == nil {
		fmt.Fprintln(s.Err, "nothing to change: muster package lint names what 2to3 leaves")
	}
	return exit.With(exit.Definition, problems)
}

// printChanges prints the diffs, tells whether there are any, and joins what could not be read.
func printChanges(s console.Streams, changes []modernize.Change) (differ bool, problems error) {
	for _, c := range changes {
		switch {
		case c.Err != nil:
			problems = errors.Join(problems, c.Err)
		case c.Link:
			fmt.Fprintf(s.Err, "%s is a link and is left as it is\n", packages.Printable(c.Name))
		default:
			fmt.Fprint(s.Out, c.Diff)
			differ = true
		}
	}
	return differ, problems
}
