package ship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/cache"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// FetchOptions are what is done with the packages that are fetched. Out, Extract and SHA256 are of one package.
type FetchOptions struct {
	Out      string           // file to write, with its signature; empty: it stays in the cache
	Extract  string           // folder to unpack it in; empty: it is not unpacked
	SHA256   string           // digest that it must have; empty: the URL says it, or any
	Keys     []sign.PublicKey // one of them must have signed it; none: anybody, or nobody
	Parallel int              // how many are loaded at a time

	Stores   store.Set
	Progress io.Writer // is told of downloads
}

// Fetched is the answer of muster package fetch --json for one URL.
type Fetched struct {
	Version   int             `json:"version"`
	URL       string          `json:"url"` // without passwords
	File      string          `json:"file"`
	SHA256    string          `json:"sha256"`
	Bytes     int64           `json:"bytes"`
	Cached    bool            `json:"cached"`    // nothing was loaded
	Signature *sign.Signature `json:"signature"` // null: none was asked for, see --verify
	Extracted string          `json:"extracted,omitempty"`
}

// Fetch loads the packages that refs name into the cache, checks them, and brings them to where they are wanted.
func Fetch(ctx context.Context, refs []string, o FetchOptions) (out []Fetched, err error) {
	requests := make([]cache.Request, len(refs))
	for i, ref := range refs {
		if requests[i], err = o.request(ref); err != nil {
			return nil, err
		}
	}
	files, err := cache.FetchAll(ctx, requests, o.Parallel)
	if err != nil {
		return nil, exit.With(openapp.FetchCode(err), err)
	}
	for i, file := range files {
		defer func() { err = errors.Join(err, file.Close()) }()
		one, err := o.deliver(ctx, file, store.Printable(requests[i].URL))
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (o FetchOptions) request(ref string) (cache.Request, error) {
	at, err := openapp.ParseLocation(ref)
	if err != nil {
		return cache.Request{}, err
	}
	switch {
	case o.SHA256 == "":
	case !openapp.DigestForm.MatchString(o.SHA256):
		return cache.Request{}, exit.Usagef("package fetch: --sha256 %q: want 64 hex digits in lower case", o.SHA256)
	case at.Digest != "" && at.Digest != o.SHA256:
		return cache.Request{}, exit.Usagef("package fetch: --sha256 and %s… of the URL differ", openapp.Pin)
	default:
		at.Digest = o.SHA256
	}
	return cache.Request{
		URL: at.URL, SHA256: at.Digest, CacheDir: cachedir.Default(), Progress: o.Progress,
		Sidecars: []cache.Sidecar{{Suffix: sign.Ending, Optional: true}}, Stores: o.Stores,
	}, nil
}

// deliver checks a file of the cache and brings it to where it is wanted.
func (o FetchOptions) deliver(ctx context.Context, file cache.File, url string) (Fetched, error) {
	one := Fetched{Version: 1, URL: url, File: file.Path, SHA256: file.SHA256, Bytes: file.Size, Cached: file.Cached}
	if len(o.Keys) > 0 {
		found, err := verify(file, url, o.Keys)
		if err != nil {
			return one, exit.With(exit.Definition, err)
		}
		one.Signature = &found
	}
	if o.Out != "" {
		if err := copyOut(ctx, file, o.Out); err != nil {
			return one, err
		}
		one.File = o.Out
	}
	if o.Extract != "" {
		options := packages.ExtractOptions{Name: path.Base(url), Digest: file.SHA256}
		if _, err := packages.Extract(ctx, file.Path, o.Extract, options); err != nil {
			return one, exit.With(exit.Definition, err)
		}
		one.Extracted = o.Extract
	}
	return one, nil
}

// verify checks the file in the cache. Errors name the URL: nobody knows the paths of the cache.
func verify(file cache.File, url string, keys []sign.PublicKey) (sign.Signature, error) {
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

// copyOut writes the file, then its signature; that of an earlier file there would contradict it.
func copyOut(ctx context.Context, file cache.File, out string) error {
	to, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return exit.Usagef("package fetch: -o %s is a folder, want a file", out)
	}
	if _, err := store.Put(ctx, to, file.Path, file.SHA256, schemes.Local()); err != nil {
		return err
	}
	beside, ok := file.Sidecars[sign.Ending]
	if !ok {
		return removeStale(to + sign.Ending)
	}
	_, err = store.Put(ctx, to+sign.Ending, beside.Path, beside.SHA256, schemes.Local())
	return err
}
