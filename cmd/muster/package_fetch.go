package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages/ship"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
)

type packageFetchFlags struct {
	ship.FetchOptions
	keys   []string
	json   bool
	hadoop flags.Hadoop
}

// fetchedFiles is the answer of muster package fetch --json for several URLs.
type fetchedFiles struct {
	Version int            `json:"version"`
	Files   []ship.Fetched `json:"files"`
}

func newPackageFetch(s console.Streams) *cobra.Command {
	f := packageFetchFlags{}
	cmd := &cobra.Command{
		Use: "fetch URL...", Short: "Fetch packages into the cache or a file, and check them", Args: atLeastOne("URL"),
		Long: `Fetches a file:, hdfs:, http: or https: URL into the cache, with its FILE.minisig if there is one,
and prints sha256 and path as sha256sum(1) does. Several URLs are fetched in parallel. A cached file
is not fetched again; an interrupted download is resumed. URL#sha256=HEX, or --sha256, is the digest
that the file must have. --extract unpacks it, completely or not at all.

Exits with 65 when the file does not exist or does not match --sha256 or --verify, with 69 when the
server cannot be reached, with 77 when it refuses.`,
		Example: `  muster package fetch https://host/myapp-1.0.0.zip -o myapp.zip \
      --verify release.pub
  muster run https://host/myapp-1.0.0.zip#sha256=HEX`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.fetch(cmd.Context(), s, args) },
	}
	set := cmd.Flags()
	f.hadoop.Register(set)
	set.StringVarP(&f.Out, "output", "o", "", "`FILE` to write; a signature goes to FILE.minisig")
	set.StringVarP(&f.Extract, "extract", "x", "", "`DIR` to unpack into; it must be empty or not exist")
	set.IntVar(&f.Parallel, "parallel", 4, "how many URLs are fetched at once")
	set.StringVar(&f.SHA256, "sha256", "", "digest that the file must have, in `HEX`")
	set.StringArrayVar(&f.keys, "verify", nil,
		"public `KEY` RW…, or its file, that must have signed it; repeatable")
	set.BoolVar(&f.json, "json", false, "print {url, file, sha256, bytes, cached, signature} as JSON")
	return cmd
}

func (f *packageFetchFlags) fetch(ctx context.Context, s console.Streams, refs []string) error {
	if len(refs) > 1 && (f.Out != "" || f.Extract != "" || f.SHA256 != "") {
		return exit.Usagef("package fetch: --output, --extract and --sha256 are of one URL, got %d", len(refs))
	}
	err := f.hadoop.Check()
	if err != nil {
		return err
	}
	if f.Keys, err = sign.OpenPublicKeys(f.keys); err != nil {
		return exit.With(exit.Usage, err)
	}
	f.Stores, f.Progress = f.hadoop.Stores(s.Err), s.Err
	files, err := ship.Fetch(ctx, refs, f.FetchOptions)
	switch {
	case err != nil:
		return err
	case f.json && len(files) == 1:
		return console.PrintJSON(s.Out, files[0])
	case f.json:
		return console.PrintJSON(s.Out, fetchedFiles{Version: 1, Files: files})
	}
	for _, one := range files {
		fmt.Fprintf(s.Out, "%s  %s\n", one.SHA256, one.File)
	}
	return nil
}
