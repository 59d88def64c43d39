package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type packageFetchFlags struct {
	out      string
	extract  string
	sha256   string
	keys     []string
	parallel int
	json     bool
	hadoop   hadoopFlags
}

// fetched is the answer of muster package fetch --json.
type fetched struct {
	Version   int             `json:"version"`
	URL       string          `json:"url"` // without passwords
	File      string          `json:"file"`
	SHA256    string          `json:"sha256"`
	Bytes     int64           `json:"bytes"`
	Cached    bool            `json:"cached"`    // nothing was loaded
	Signature *sign.Signature `json:"signature"` // null: none was asked for, see --verify
	Extracted string          `json:"extracted,omitempty"`
}

// fetchedFiles is the answer for several URLs.
type fetchedFiles struct {
	Version int       `json:"version"`
	Files   []fetched `json:"files"`
}

func newPackageFetch(s streams) *cobra.Command {
	f := packageFetchFlags{}
	cmd := &cobra.Command{
		Use: "fetch URL...", Short: "Load packages, checked, into the cache or a file", Args: atLeastOne("URL"),
		Long: `Loads what a file:, hdfs:, http: or https: URL names into the cache, and its FILE.minisig where there is one, and prints the
sha256 and the path as sha256sum(1) does. Several URLs are loaded beside each other. What is there already is not loaded again; what broke off goes on where it
ended. URL#sha256=HEX, or --sha256, says what it must be. --extract unpacks it, whole or not at all.

Ends with 65 when it is not what --sha256 or --verify want, or not there, with 69 when it cannot be reached, with 77
when the server refuses.`,
		Example: `  muster package fetch https://host/myapp-1.0.0.zip -o myapp.zip --verify release.pub
  muster run https://host/myapp-1.0.0.zip#sha256=HEX`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.fetch(cmd.Context(), s, args) },
	}
	flags := cmd.Flags()
	f.hadoop.register(flags)
	flags.StringVarP(&f.out, "output", "o", "", "`FILE` to write; FILE.minisig too where there is a signature")
	flags.StringVarP(&f.extract, "extract", "x", "", "`DIR` to unpack it in; it must not be there, or be empty")
	flags.IntVar(&f.parallel, "parallel", 4, "how many URLs are loaded at a time")
	flags.StringVar(&f.sha256, "sha256", "", "digest that it must have, in `HEX`")
	flags.StringArrayVar(&f.keys, "verify", nil, "public `KEY` RW…, or its file, that must have signed it; repeatable")
	flags.BoolVar(&f.json, "json", false, "print {url, file, sha256, bytes, cached, signature} as JSON")
	return cmd
}

func (f *packageFetchFlags) fetch(ctx context.Context, s streams, refs []string) (err error) {
	if len(refs) > 1 && (f.out != "" || f.extract != "" || f.sha256 != "") {
		return exit.Usagef("package fetch: --output, --extract and --sha256 are of one URL, got %d", len(refs))
	}
	if err := f.hadoop.Check(); err != nil {
		return err
	}
	keys, err := openKeys(f.keys)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	requests := make([]fetch.Request, len(refs))
	for i, ref := range refs {
		if requests[i], err = f.request(s, ref); err != nil {
			return err
		}
	}
	files, err := fetch.FetchAll(ctx, requests, f.parallel)
	if err != nil {
		return exit.With(openapp.FetchCode(err), err)
	}
	answer := fetchedFiles{Version: 1}
	for i, file := range files {
		defer func() { err = errors.Join(err, file.Close()) }()
		one, err := f.take(ctx, file, fetch.Printable(requests[i].URL), keys)
		if err != nil {
			return err
		}
		answer.Files = append(answer.Files, one)
	}
	return f.print(s, answer)
}

// take checks a file of the cache and brings it to where it is wanted.
func (f *packageFetchFlags) take(ctx context.Context, file fetch.File, url string, keys []sign.PublicKey) (fetched, error) {
	one := fetched{Version: 1, URL: url, File: file.Path, SHA256: file.SHA256, Bytes: file.Size, Cached: file.Cached}
	if len(keys) > 0 {
		found, err := verifyFetched(file, url, keys)
		if err != nil {
			return one, exit.With(exit.Definition, err)
		}
		one.Signature = &found
	}
	if f.out != "" {
		if err := f.copyOut(ctx, file); err != nil {
			return one, err
		}
		one.File = f.out
	}
	if f.extract != "" {
		o := packages.ExtractOptions{Name: path.Base(url), Digest: file.SHA256}
		if _, err := packages.Extract(ctx, file.Path, f.extract, o); err != nil {
			return one, exit.With(exit.Definition, err)
		}
		one.Extracted = f.extract
	}
	return one, nil
}

func (f *packageFetchFlags) print(s streams, answer fetchedFiles) error {
	switch {
	case f.json && len(answer.Files) == 1:
		return printJSON(s.out, answer.Files[0])
	case f.json:
		return printJSON(s.out, answer)
	}
	for _, one := range answer.Files {
		fmt.Fprintf(s.out, "%s  %s\n", one.SHA256, one.File)
	}
	return nil
}

func (f *packageFetchFlags) request(s streams, ref string) (fetch.Request, error) {
	at, err := openapp.ParseLocation(ref)
	if err != nil {
		return fetch.Request{}, err
	}
	switch {
	case f.sha256 == "":
	case !openapp.DigestForm.MatchString(f.sha256):
		return fetch.Request{}, exit.Usagef("package fetch: --sha256 %q: want 64 hex digits in lower case", f.sha256)
	case at.Digest != "" && at.Digest != f.sha256:
		return fetch.Request{}, exit.Usagef("package fetch: --sha256 and %s… of the URL differ", openapp.Pin)
	default:
		at.Digest = f.sha256
	}
	return fetch.Request{
		URL: at.URL, SHA256: at.Digest, CacheDir: cachedir.Default(), Progress: s.err,
		Sidecars: []fetch.Sidecar{{Suffix: sign.Ending, Optional: true}}, Options: f.hadoop.Fetching(s.err),
	}, nil
}

// verifyFetched checks the file in the cache; its path is no word for a person.
func verifyFetched(file fetch.File, url string, keys []sign.PublicKey) (sign.Signature, error) {
	beside, ok := file.Sidecars[sign.Ending]
	if !ok {
		return sign.Signature{}, fmt.Errorf("verify %s: %w: no %s beside it", url, sign.ErrUnsigned, sign.Ending)
	}
	found, err := sign.Verify(file.Path, beside.Path, keys...)
	if err != nil {
		return found, fmt.Errorf("%s: %w", url, err)
	}
	return found, nil
}

// copyOut writes the file, then its signature; one of an earlier file there would belie it.
func (f *packageFetchFlags) copyOut(ctx context.Context, file fetch.File) error {
	to := absolute(f.out)
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return exit.Usagef("package fetch: -o %s is a folder, want a file", f.out)
	}
	if _, err := fetch.Put(ctx, to, file.Path, file.SHA256, fetch.Options{}); err != nil {
		return err
	}
	beside, ok := file.Sidecars[sign.Ending]
	if !ok {
		return removeStale(to + sign.Ending)
	}
	_, err := fetch.Put(ctx, to+sign.Ending, beside.Path, beside.SHA256, fetch.Options{})
	return err
}
