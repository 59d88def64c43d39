package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// defaultMaxBytes is the limit of a file unless a Request has one: several times the largest packages.
const defaultMaxBytes = 64 << 30

// maxSidecar is enough for any signature or list of digests, in bytes.
const maxSidecar = 1 << 20

// Request is a wanted file; only URL is required.
type Request struct {
	URL      string
	SHA256   string    // expected, 64 hex digits; empty: any
	Sidecars []Sidecar // files beside it
	CacheDir string    // default the user's cache folder, `muster` in it
	Progress io.Writer // one updated line on a terminal, else a line every 10 s; nil: none
	Retries  int       // default DefaultRetries; negative: none
	MaxBytes int64     // default defaultMaxBytes
	Stores   store.Set // by the scheme of URL
}

// Sidecar is a file beside another: its URL is the other's with a suffix at the end of the path, such as `.minisig`.
// Its limit is 1 MiB.
type Sidecar struct {
	Suffix   string
	Optional bool // its absence is no error
}

// File is a file in the cache. It is read-only, and stays as it is until Close.
type File struct {
	URL      string
	Path     string
	SHA256   string          // 64 hex digits
	Size     int64           // bytes
	Cached   bool            // it was in the cache
	Sidecars map[string]File // by suffix, without optional ones that do not exist

	held *lock
}

// Close releases the file: Clean may remove it from then on.
func (f File) Close() error {
	var errs []error
	for _, s := range f.Sidecars {
		errs = append(errs, s.Close())
	}
	if f.held != nil {
		errs = append(errs, f.held.Release())
	}
	return errors.Join(errs...)
}

// Fetch gives a file of a store as a local one, checked against its digest. A file that the cache has by that digest
// needs no network; without a digest the store is asked whether its file has changed. A broken download resumes, in
// this process or the next, unless the file has changed. Processes that want the same URL wait for the one that loads
// it. Errors are *Error.
func Fetch(ctx context.Context, r Request) (File, error) {
	show := newDisplay(r.Progress, []Request{r})
	defer show.finish()
	return one(ctx, r, show)
}

// FetchAll is Fetch of several files, at most parallel of them (default 4) at a time. The first error cancels the
// others and releases them. The first request's Progress shows all of them together.
func FetchAll(ctx context.Context, requests []Request, parallel int) ([]File, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	if parallel <= 0 {
		parallel = 4
	}
	show := newDisplay(requests[0].Progress, requests)
	defer show.finish()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make([]File, len(requests))
	places := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			f, err := one(ctx, r, show)
			if err != nil {
				cancel(err) // the first error wins
			}
			files[i] = f
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return files, nil
}

func (r Request) filled() (Request, error) {
	if r.SHA256 != "" {
		r.SHA256 = strings.ToLower(r.SHA256)
		if !store.IsDigest(r.SHA256) {
			return r, fmt.Errorf("sha256: got %.80q, want 64 hex digits", r.SHA256)
		}
	}
	if r.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return r, fmt.Errorf("find the cache folder: %w", err)
		}
		r.CacheDir = filepath.Join(dir, "muster")
	}
	if r.Retries == 0 {
		r.Retries = store.DefaultRetries
	}
	r.Retries = max(r.Retries, 0)
	if r.MaxBytes <= 0 {
		r.MaxBytes = defaultMaxBytes
	}
	return r, nil
}

func one(ctx context.Context, r Request, show *display) (_ File, err error) {
	if err := ctx.Err(); err != nil {
		return File{}, store.Explain("fetch", r.URL, context.Cause(ctx))
	}
	full, err := r.filled()
	if err != nil {
		return File{}, store.Explain("fetch", r.URL, err)
	}
	c, err := openCache(full.CacheDir)
	if err != nil {
		return File{}, store.Explain("fetch", r.URL, err)
	}
	f, err := load(ctx, c, full, show)
	if err != nil {
		return File{}, store.Explain("fetch", r.URL, err)
	}
	f.Sidecars = map[string]File{}
	for _, s := range r.Sidecars {
		beside := Request{
			URL: besideURL(full.URL, s.Suffix), Retries: full.Retries, MaxBytes: maxSidecar, Stores: full.Stores,
		}
		got, err := load(ctx, c, beside, nil)
		if s.Optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return File{}, errors.Join(store.Explain("fetch", beside.URL, err), f.Close())
		}
		f.Sidecars[s.Suffix] = got
	}
	return f, nil
}

// besideURL adds a suffix to a URL's path, before the query.
func besideURL(url, suffix string) string {
	if scheme := store.SchemeOf(url); scheme == "http:" || scheme == "https:" {
		url, _, _ = strings.Cut(url, "#")
		if bare, query, ok := strings.Cut(url, "?"); ok {
			return bare + suffix + "?" + query
		}
	}
	return url + suffix
}

// load gives a file from the cache or its store.
func load(ctx context.Context, c cache, r Request, show *display) (_ File, err error) {
	if r.SHA256 != "" {
		if found, err := c.take(ctx, r.SHA256); err != nil || found != nil {
			return found.file(r.URL), err
		}
	}
	store, path, err := r.Stores.Open(ctx, r.URL)
	if err != nil {
		return File{}, err
	}
	held, err := c.lock(ctx, "url-"+key(r.URL), syscall.LOCK_EX)
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	d := &download{cache: c, store: store, path: path, url: r.URL, want: r.SHA256, max: r.MaxBytes, retries: r.Retries}
	if found, err := d.unchanged(ctx); err != nil || found != nil {
		return found.file(r.URL), err
	}
	d.tally = show.add()
	f, digest, n, err := d.whole(ctx)
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	kept, err := c.keep(ctx, f, digest, info.Size())
	if err != nil {
		return File{}, err
	}
	err = c.remember(r.URL, remembered{Validator: n.Validator, Digest: digest, Size: info.Size()})
	if err = errors.Join(err, removeIfThere(d.partial()+".json")); err != nil {
		return File{}, errors.Join(err, kept.held.Release())
	}
	file := kept.file(r.URL)
	file.Cached = false
	return file, nil
}

// unchanged gives the cached content of the URL if the store still has the same. Another process may have just brought
// it. A store without validators has it loaded again.
func (d *download) unchanged(ctx context.Context) (*content, error) {
	if d.want != "" {
		return d.cache.take(ctx, d.want)
	}
	was, ok := d.cache.recall(d.url)
	if !ok || was.Size > d.max {
		return nil, nil //nolint:nilnil // not there is an answer
	}
	asking, _, stop := watch(ctx)
	now, err := d.store.Stat(asking, d.path)
	stop()
	if err != nil || now.Validator != was.Validator || now.Size >= 0 && now.Size != was.Size {
		return nil, ctx.Err() //nolint:nilerr // the download meets the same error, and retries
	}
	return d.cache.take(ctx, was.Digest)
}

// file is empty for no content.
func (c *content) file(url string) File {
	if c == nil {
		return File{}
	}
	return File{URL: url, Path: c.path, SHA256: c.digest, Size: c.size, Cached: true, held: c.held}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
