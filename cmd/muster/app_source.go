package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/hdfs"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
)

// source is an opened APP and where it came from.
type source struct {
	pkg       *packages.Package
	ref       string // what an agent is told to load: the same bytes, wherever it runs
	signature string // path of the archive's signature; there may be none
	url       string // where it was fetched, for people to read; empty: it is a file here
	file      fetch.File
	job       []byte // of a job file: its text
}

// close frees the package; what was read from it stays.
func (f source) close() {
	_ = errors.Join(f.pkg.Close(), f.file.Close()) // a temporary folder stays at worst
}

// openPackage opens what APP names and says what an agent would be told to load.
func openPackage(ctx context.Context, ref string) (*packages.Package, string, error) {
	from, err := (&appChoices{}).open(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	return from.pkg, from.ref, from.file.Close() // an open archive can be read when the cache has let it go
}

// open opens what APP names, if the policy admits it.
func (f *appChoices) open(ctx context.Context, ref string) (source, error) {
	from, err := f.find(ctx, ref)
	if err == nil && f.policy != nil {
		if err = admit(*f.policy, from); err != nil {
			from.close()
		}
	}
	return from, err
}

func (f *appChoices) find(ctx context.Context, ref string) (source, error) {
	if name, ok := strings.CutPrefix(ref, "catalog:"); ok {
		files, err := catalog.Open(name)
		if err != nil {
			return source{}, exit.With(exit.Usage, err)
		}
		return source{pkg: &packages.Package{FS: files, Name: name}, ref: ref}, nil
	}
	if from, ok, err := openJob(ctx, ref); ok || err != nil {
		return from, err
	}
	at, err := parseLocation(ref)
	if err != nil {
		return source{}, err
	}
	if at.remote() {
		return f.fetch(ctx, at)
	}
	path, err := at.local(ctx)
	if err != nil {
		return source{}, err
	}
	open := packages.Open
	if f.policy != nil && f.policy.Packages.RequireSignature { // else it could change once it was verified
		open = packages.OpenOwn
	}
	pkg, err := open(path)
	if errors.Is(err, fs.ErrNotExist) && !exists(path) {
		return source{}, exit.With(exit.Definition, errors.New(notThere(ref)))
	}
	if err != nil {
		return source{}, exit.With(exit.Definition, err)
	}
	if at.digest != "" && at.digest != pkg.Digest {
		err := fmt.Errorf("open package %s: %w", at.url, &fetch.DigestError{Want: at.digest, Got: pkg.Digest})
		return source{}, exit.With(exit.Definition, errors.Join(err, pkg.Close()))
	}
	return source{pkg: pkg, ref: pkg.Path, signature: pkg.Path + sign.Ending}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// notThere says what would do in place of a path that is not there. The name of a package of the catalog is often given
// without its scheme.
func notThere(ref string) string {
	names := catalog.Names()
	text := fmt.Sprintf("app %s: no such file or folder, want a folder, an archive, a job file, file:, hdfs:, http:, https: or catalog:NAME (%s)", ref, strings.Join(names, ", "))
	near, ok := appdef.Nearest(ref, names)
	if slices.Contains(names, ref) {
		near, ok = ref, true
	}
	if ok {
		text += "; did you mean catalog:" + near + "?"
	}
	return text
}

// fetch loads a package into the cache. The agents are told its digest as well: all of a run have the same bytes, and
// those of one host load them once.
func (f *appChoices) fetch(ctx context.Context, at location) (source, error) {
	request := fetch.Request{URL: at.url, SHA256: at.digest, CacheDir: cacheDir(), Progress: f.progress, Options: f.hadoop.fetching(f.progress)}
	if f.signed || f.policy != nil && f.policy.Packages.RequireSignature {
		request.Sidecars = []fetch.Sidecar{{Suffix: sign.Ending, Optional: true}}
	}
	file, err := fetch.Fetch(ctx, request)
	if err != nil {
		return source{}, exit.With(fetchCode(err), err)
	}
	f.makeRoom(ctx)
	pkg, err := packages.Open(file.Path)
	if err != nil {
		return source{}, exit.With(exit.Definition, errors.Join(fmt.Errorf("%s: %w", fetch.Printable(at.url), err), file.Close()))
	}
	pkg.Name = at.name()
	from := source{pkg: pkg, ref: at.url + pin + file.SHA256, url: fetch.Printable(at.url), file: file}
	if beside, ok := file.Sidecars[sign.Ending]; ok {
		from.signature = beside.Path
	}
	return from, nil
}

// keepFetched is how long a package stays in the cache that nobody asks for.
const keepFetched = 30 * 24 * time.Hour

// makeRoom takes out of the cache what nobody has asked for in a long time. It is a kindness to the disk: that it cannot
// be done keeps nobody from running.
func (f *appChoices) makeRoom(ctx context.Context) {
	_, err := fetch.Clean(ctx, cacheDir(), fetch.Keep{Since: time.Now().Add(-keepFetched)})
	if err != nil && f.progress != nil {
		fmt.Fprintln(f.progress, "clean the cache of packages:", err)
	}
}

// location is where a package is, and the digest that it must have.
type location struct{ url, digest string }

// pin is what stands between a URL and the digest of what it must give.
const pin = "#sha256="

var (
	schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// parseLocation reads a path, or a URL that may end in #sha256=HEX.
func parseLocation(ref string) (location, error) {
	scheme := strings.ToLower(schemeForm.FindString(ref))
	switch scheme {
	case "":
		return location{url: ref}, nil
	case "file:", "http:", "https:", "hdfs:":
	default:
		if _, err := os.Stat(ref); err == nil {
			return location{url: ref}, nil // a file whose name has a colon
		}
		want := "a folder, an archive, a job file, file:, hdfs:, http:, https: or catalog:NAME"
		if scheme == "catalog:" { // where only a file can be meant
			want = "a folder, an archive, file:, hdfs:, http: or https:"
		}
		return location{}, exit.Usagef("app %s: got %s, want %s", ref, scheme, want)
	}
	url, digest, pinned := strings.Cut(ref, pin)
	digest = strings.ToLower(digest)
	if pinned && !digestForm.MatchString(digest) {
		return location{}, exit.Usagef("app %s: want 64 hex digits after %s", ref, pin)
	}
	return location{url, digest}, nil
}

// local is the path of a file of this machine.
func (l location) local(ctx context.Context) (string, error) {
	if !strings.EqualFold(schemeForm.FindString(l.url), "file:") {
		return l.url, nil
	}
	_, path, err := fetch.Open(ctx, l.url, fetch.Options{})
	return path, exit.With(exit.Usage, err)
}

// remote tells that it is no file of this machine.
func (l location) remote() bool {
	scheme := strings.ToLower(schemeForm.FindString(l.url))
	return scheme == "http:" || scheme == "https:" || scheme == "hdfs:"
}

// readOnly tells that nothing can be put there.
func (l location) readOnly() bool {
	scheme := strings.ToLower(schemeForm.FindString(l.url))
	return scheme == "http:" || scheme == "https:"
}

// name is the file's own, without its ending.
func (l location) name() string {
	bare, _, _ := strings.Cut(l.url, "?")
	return packages.BaseName(bare)
}

// fetchCode is the exit code for what kept a file from being fetched.
func fetchCode(err error) int {
	switch {
	case errors.Is(err, fetch.ErrScheme), errors.Is(err, errors.ErrUnsupported):
		return exit.Usage
	case errors.Is(err, fetch.ErrUnreachable): // a KDC that is away, too
		return exit.Registry
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fetch.ErrRedirect), errors.Is(err, hdfs.ErrKerberos), errors.Is(err, fetch.ErrQuota):
		return exit.Forbidden
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fetch.ErrDigest), errors.Is(err, fetch.ErrTooLarge), errors.Is(err, fetch.ErrNotFile):
		return exit.Definition
	case errors.Is(err, fetch.ErrTLS), errors.Is(err, fetch.ErrProtocol), errors.Is(err, fetch.ErrCorrupt):
		return exit.Registry
	}
	if _, odd := errors.AsType[*fetch.StatusError](err); odd { // an answer, and no file
		return exit.Registry
	}
	return 1
}
