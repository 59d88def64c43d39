package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

func newPackagePush(s streams) *cobra.Command {
	f := packagePushFlags{}
	cmd := &cobra.Command{
		Use: "push FILE URL", Short: "Put a package, and its signature, where others fetch it", Args: exactly("FILE", "URL"),
		Long: `Copies FILE, and FILE.minisig where there is one, to a file: or hdfs: URL, whole or not at all, and prints its
sha256 and the URL. A URL that ends in / is a folder. The same file there is left as it is; another one is refused (65)
without --force.`,
		Example: `  muster package push myapp-1.0.0.zip file:///srv/packages/
  muster package push myapp-1.0.0.zip hdfs:///packages/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.push(cmd.Context(), s, args[0], args[1])
		},
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "replace another file that is there")
	f.hadoop.register(cmd.Flags())
	return cmd
}

// packagePushFlags are those of muster package push.
type packagePushFlags struct {
	force  bool
	hadoop hadoopFlags
}

func (f *packagePushFlags) push(ctx context.Context, s streams, file, ref string) error {
	if err := f.hadoop.Check(); err != nil {
		return err
	}
	stores := f.hadoop.Fetching(s.err)
	at, err := openapp.ParseLocation(ref)
	if err != nil {
		return err
	}
	if at.ReadOnly() {
		return exit.Usagef("package push: %s is for reading alone; put it into the folder that the server shows, by file:, or by the server's own tool", fetch.Printable(at.URL))
	}
	if at.Digest != "" {
		return exit.Usagef("package push: %s… says what is fetched, not what is pushed", openapp.Pin)
	}
	if strings.HasSuffix(at.URL, "/") {
		at.URL += filepath.Base(file)
	}
	digest, err := digestOfPackage(file)
	if err != nil {
		return err
	}
	there, err := digestThere(ctx, at.URL, stores)
	if err != nil {
		return exit.With(openapp.FetchCode(err), err)
	}
	if there != "" && there != digest && !f.force {
		return exit.With(exit.Definition, fmt.Errorf("package push: %s: another file is there: sha256 %s, this is %s; --force replaces it",
			fetch.Printable(at.URL), there, digest))
	}
	if err := putPackage(ctx, file, at.URL, digest, there, stores); err != nil {
		return coded(openapp.FetchCode(err), err)
	}
	fmt.Fprintf(s.out, "%s  %s\n", digest, fetch.Printable(at.URL))
	return nil
}

// digestOfPackage is the sha256 of an archive that an agent would take.
func digestOfPackage(file string) (string, error) {
	pkg, err := packages.Open(file)
	if err != nil {
		return "", exit.With(exit.Definition, err)
	}
	if pkg.Folder {
		err = fmt.Errorf("package push %s: got a folder, want an archive: muster package build makes one", file)
	}
	return pkg.Digest, exit.With(exit.Definition, errors.Join(err, pkg.Close()))
}

// digestThere is the sha256 of what a URL has; empty: nothing.
func digestThere(ctx context.Context, url string, o fetch.Options) (digest string, err error) {
	store, path, err := fetch.Open(ctx, url, o)
	if err != nil {
		return "", err
	}
	content, err := store.Open(ctx, path, fetch.Position{})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// putPackage puts the signature last: who sees it sees the file that it is of. One of an earlier file goes first.
func putPackage(ctx context.Context, file, url, digest, there string, o fetch.Options) error {
	beside := file + sign.Ending
	_, err := os.Stat(beside)
	signed := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if there != digest {
		if err := removeThere(ctx, url+sign.Ending, o); err != nil {
			return err
		}
		if _, err := fetch.Put(ctx, url, file, digest, o); err != nil {
			return err
		}
	}
	if signed {
		_, err = fetch.Put(ctx, url+sign.Ending, beside, "", o)
		return err
	}
	return nil
}

func removeThere(ctx context.Context, url string, o fetch.Options) error {
	store, path, err := fetch.Open(ctx, url, o)
	if err != nil {
		return err
	}
	is, err := store.Stat(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && is.Dir:
		return exit.With(exit.Definition, fmt.Errorf("package push: %s is a folder, want a signature or nothing; remove it", fetch.Printable(url)))
	case err != nil:
		return err
	}
	return store.Remove(ctx, path)
}

// removeStale takes away a local file that may be there.
func removeStale(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
