package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages/ship"
	"github.com/muster-agent/muster/shim/store"
)

func newPackagePush(s console.Streams) *cobra.Command {
	f := packagePushFlags{}
	cmd := &cobra.Command{
		Use: "push FILE URL", Short: "Copy a package and its signature to a store",
		Args: exactly("FILE", "URL"),
		Long: `Copies FILE, and FILE.minisig if there is one, to a file: or hdfs: URL, completely or not at all, and
prints its sha256 and the URL. A URL that ends in / is a folder. If the same file is there already,
nothing is copied; a different one is replaced only with --force, else refused (65).`,
		Example: `  muster package push myapp-1.0.0.zip file:///srv/packages/
  muster package push myapp-1.0.0.zip hdfs:///packages/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.push(cmd.Context(), s, args[0], args[1])
		},
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "replace a different file of that name")
	f.hadoop.Register(cmd.Flags())
	return cmd
}

// packagePushFlags are those of muster package push.
type packagePushFlags struct {
	force  bool
	hadoop flags.Hadoop
}

func (f *packagePushFlags) push(ctx context.Context, s console.Streams, file, ref string) error {
	if err := f.hadoop.Check(); err != nil {
		return err
	}
	digest, url, err := ship.Push(ctx, file, ref, f.force, f.hadoop.Stores(s.Err))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s  %s\n", digest, store.Printable(url))
	return nil
}
