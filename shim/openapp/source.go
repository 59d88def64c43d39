package openapp

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
	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/cache"
	"github.com/muster-agent/muster/shim/store/file"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// Source is an opened APP and its origin.
type Source struct {
	Package   *packages.Package
	Ref       string // what agents load: the same bytes on each host
	Signature string // path of the archive's signature, which may not exist
	URL       string // of a fetched package, for people; empty: a local file
	file      cache.File
	Job       []byte // text of a job file
}

// Close frees the package; values that were read from it stay valid.
func (f Source) Close() {
	_ = errors.Join(f.Package.Close(), f.file.Close()) // a temporary folder stays at worst
}

// OpenPackage opens what APP names and returns the reference for agents.
func OpenPackage(ctx context.Context, ref string) (*packages.Package, string, error) {
	from, err := (&Choices{}).Open(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	return from.Package, from.Ref, from.file.Close() // an open archive stays readable after its cache entry is released
}

// Open opens what APP names, if the policy admits it.
func (f *Choices) Open(ctx context.Context, ref string) (Source, error) {
	from, err := f.find(ctx, ref)
	if err == nil && f.Policy != nil {
		if err = admit(*f.Policy, from); err != nil {
			from.Close()
		}
	}
	return from, err
}

func (f *Choices) find(ctx context.Context, ref string) (Source, error) {
	if name, ok := strings.CutPrefix(ref, "catalog:"); ok {
		files, err := catalog.Open(name)
		if err != nil {
			return Source{}, exit.With(exit.Usage, err)
		}
		return Source{Package: &packages.Package{FS: files, Name: name}, Ref: ref}, nil
	}
	if from, ok, err := openJob(ctx, ref); ok || err != nil {
		return from, err
	}
	at, err := ParseLocation(ref)
	if err != nil {
		return Source{}, err
	}
	if at.Remote() {
		return f.fetch(ctx, at)
	}
	path, err := at.local(ctx)
	if err != nil {
		return Source{}, err
	}
	open := packages.Open
	if f.mustSign() || at.Digest != "" { // otherwise it could change after its verification
		open = packages.OpenOwn
	}
	pkg, err := open(path)
	if errors.Is(err, fs.ErrNotExist) && isAbsent(path) {
		return Source{}, exit.With(exit.Definition, errors.New(notThere(ref)))
	}
	if err != nil {
		return Source{}, exit.With(exit.Definition, err)
	}
	if at.Digest != "" && at.Digest != pkg.Digest {
		err := fmt.Errorf("open package %s: %w", at.URL, &store.DigestError{Want: at.Digest, Got: pkg.Digest})
		return Source{}, exit.With(exit.Definition, errors.Join(err, pkg.Close()))
	}
	return Source{Package: pkg, Ref: at.pinned(pkg.Path), Signature: pkg.Path + sign.Ending}, nil
}

func isAbsent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// notThere is the error for a missing path, with the remedy: a catalog name is often given without its scheme.
func notThere(ref string) string {
	names := catalog.Names()
	text := fmt.Sprintf("app %s: no such file or folder, want a folder, an archive, a job file, file:, hdfs:, http:, "+
		"https: or catalog:NAME (%s)", ref, strings.Join(names, ", "))
	near, ok := appdef.Nearest(ref, names)
	if slices.Contains(names, ref) {
		near, ok = ref, true
	}
	if ok {
		text += "; did you mean catalog:" + near + "?"
	}
	return text
}

// fetch loads a package into the cache. The agents get its digest as well: all of a run load the same bytes, and those
// of one host load them once.
func (f *Choices) fetch(ctx context.Context, at Location) (Source, error) {
	request := cache.Request{
		URL: at.URL, SHA256: at.Digest, CacheDir: cachedir.Default(), Progress: f.Progress,
		Stores: f.Hadoop.Stores(f.Progress),
	}
	if f.Signed || f.mustSign() {
		request.Sidecars = []cache.Sidecar{{Suffix: sign.Ending, Optional: true}}
	}
	file, err := cache.Fetch(ctx, request)
	if err != nil {
		return Source{}, exit.With(FetchCode(err), err)
	}
	f.makeRoom(ctx)
	pkg, err := packages.Open(file.Path)
	if err != nil {
		return Source{}, exit.With(exit.Definition, errors.Join(fmt.Errorf("%s: %w", store.Printable(at.URL), err),
			file.Close()))
	}
	if pkg.Digest != "" && pkg.Digest != file.SHA256 {
		err := fmt.Errorf("%s: %w", store.Printable(at.URL), &store.DigestError{Want: file.SHA256, Got: pkg.Digest})
		return Source{}, exit.With(exit.Definition, errors.Join(err, pkg.Close(), file.Close()))
	}
	pkg.Name = at.name()
	from := Source{Package: pkg, Ref: at.URL + Pin + file.SHA256, URL: store.Printable(at.URL), file: file}
	if beside, ok := file.Sidecars[sign.Ending]; ok {
		from.Signature = beside.Path
	}
	return from, nil
}

// KeepFetched is how long an unused package stays in the cache.
const KeepFetched = 30 * 24 * time.Hour

// makeRoom removes unused packages from the cache. Its failure stops nothing.
func (f *Choices) makeRoom(ctx context.Context) {
	_, err := cache.Clean(ctx, cachedir.Default(), cache.Keep{Since: time.Now().Add(-KeepFetched)})
	if err != nil && f.Progress != nil {
		fmt.Fprintln(f.Progress, "clean the cache of packages:", err)
	}
}

// Location is a package's path or URL, and the digest that it must have.
type Location struct{ URL, Digest string }

// Pin separates a URL from the digest of its content.
const Pin = "#sha256="

// DigestForm is a SHA-256 in hexadecimal, in lower case.
var DigestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseLocation reads a path, or a URL that may end in #sha256=HEX.
func ParseLocation(ref string) (Location, error) {
	scheme := store.SchemeOf(ref)
	switch scheme {
	case "":
		if path, digest, pinned := strings.Cut(ref, Pin); pinned && DigestForm.MatchString(digest) {
			return Location{path, digest}, nil
		}
		return Location{URL: ref}, nil
	case "file:", "http:", "https:", "hdfs:":
	default:
		if _, err := os.Stat(ref); err == nil {
			return Location{URL: ref}, nil // a file whose name has a colon
		}
		want := "a folder, an archive, a job file, file:, hdfs:, http:, https: or catalog:NAME"
		if scheme == "catalog:" { // no digest: only a file can follow
			want = "a folder, an archive, file:, hdfs:, http: or https:"
		}
		return Location{}, exit.Usagef("app %s: got %s, want %s", ref, scheme, want)
	}
	url, digest, pinned := strings.Cut(ref, Pin)
	digest = strings.ToLower(digest)
	if pinned && !DigestForm.MatchString(digest) {
		return Location{}, exit.Usagef("app %s: want 64 hex digits after %s", ref, Pin)
	}
	return Location{url, digest}, nil
}

// local is the path of a file of this host.
func (l Location) local(ctx context.Context) (string, error) {
	if store.SchemeOf(l.URL) != "file:" {
		return l.URL, nil
	}
	_, path, err := file.Open(ctx, l.URL)
	return path, exit.With(exit.Usage, err)
}

// pinned is a path that its reader must find with the same digest.
func (l Location) pinned(path string) string {
	if l.Digest == "" {
		return path
	}
	return path + Pin + l.Digest
}

// Pinned is the reference with the digest of what was opened, as far as it has one: of a folder and of the catalog
// nobody knows one.
func (f Source) Pinned(ref string) string {
	digest := f.Package.Digest
	if digest == "" || f.Ref == Stdin || strings.HasPrefix(ref, "catalog:") || strings.Contains(ref, Pin) {
		return ref
	}
	return ref + Pin + digest
}

// Remote tells that it is not a file of this host.
func (l Location) Remote() bool {
	scheme := store.SchemeOf(l.URL)
	return scheme == "http:" || scheme == "https:" || scheme == "hdfs:"
}

// ReadOnly tells that nothing can be written there.
func (l Location) ReadOnly() bool {
	scheme := store.SchemeOf(l.URL)
	return scheme == "http:" || scheme == "https:"
}

// name is the file's name without its ending.
func (l Location) name() string {
	bare, _, _ := strings.Cut(l.URL, "?")
	return packages.BaseName(bare)
}

// FetchCode is the exit code for a failed fetch.
func FetchCode(err error) int {
	switch {
	case errors.Is(err, store.ErrScheme), errors.Is(err, errors.ErrUnsupported):
		return exit.Usage
	case errors.Is(err, store.ErrUnreachable): // includes an unreachable KDC
		return exit.Registry
	case errors.Is(err, fs.ErrPermission), errors.Is(err, store.ErrRedirect), errors.Is(err, hdfs.ErrKerberos),
		errors.Is(err, store.ErrQuota):
		return exit.Forbidden
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrDigest), errors.Is(err, store.ErrTooLarge),
		errors.Is(err, store.ErrNotFile):
		return exit.Definition
	case errors.Is(err, store.ErrTLS), errors.Is(err, store.ErrProtocol), errors.Is(err, store.ErrCorrupt):
		return exit.Registry
	}
	if _, odd := errors.AsType[*store.StatusError](err); odd { // the server answered without a file
		return exit.Registry
	}
	return 1
}
