package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages/skeleton"
	"github.com/muster-agent/muster/shim/exit"
)

type packageInitFlags struct {
	framework string
	dir       string
}

func newPackageInit(s console.Streams) *cobra.Command {
	f := packageInitFlags{}
	cmd := &cobra.Command{
		Use: "init NAME", Short: "Make a package that runs, to start from", Args: exactly("NAME"),
		Long: `Makes the folder of a package that runs as it is, for you to change. --framework selects the start:

  none        a command that every instance runs
  script      a class with install, start, status and stop, as in Slider's packages
  tensorflow  parameter servers and workers
  others      the catalog's package of that framework, a small job on several processes

The folder must be empty or not exist.`,
		Example: "  muster package init myapp\n  muster package init digits --framework tensorflow --dir apps/digits",
		RunE:    func(_ *cobra.Command, args []string) error { return f.init(s, args[0]) },
	}
	cmd.Flags().StringVar(&f.framework, "framework", skeleton.Plain,
		"from "+strings.Join(skeleton.Kinds(), ", "))
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder to write (default: NAME)")
	completeFlag(cmd, "framework", cobra.FixedCompletions(skeleton.Kinds(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *packageInitFlags) init(s console.Streams, name string) error {
	dir := f.dir
	if dir == "" {
		dir = name
	}
	files, err := skeleton.Write(f.framework, name, dir)
	switch {
	case errors.Is(err, skeleton.ErrKind), errors.Is(err, skeleton.ErrName), errors.Is(err, skeleton.ErrNotEmpty):
		return exit.With(exit.Usage, fmt.Errorf("package init: %w", err))
	case err != nil:
		return fmt.Errorf("package init: %w", err)
	}
	for _, file := range files {
		fmt.Fprintf(s.Out, "%s/%s\n", dir, file)
	}
	fmt.Fprintf(s.Err, "\nNext:\n  muster validate %[1]s\n  muster run %[1]s\n  muster package build %[1]s -o "+
		"%[2]s-0.1.0.zip\n", dir, name)
	return nil
}
