package store

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Store keeps files. Paths are those that Set.Open gave, or made of them with / between elements.
// Errors are *Error; what is not there is fs.ErrNotExist, what a store cannot do is errors.ErrUnsupported.
type Store interface {
	// List gives what lies directly in a folder, sorted by path.
	List(ctx context.Context, path string) ([]Info, error)
	Stat(ctx context.Context, path string) (Info, error)
	// Open reads a file from a position on. A store that cannot begin there, or has another version of the file by now,
	// gives it from its start: Content.Offset tells. The content is read under ctx.
	Open(ctx context.Context, path string, at Position) (*Content, error)
	// Create makes a new file and the folders above it; fs.ErrExist when there is one. The file is durable when Close
	// has returned without error. It belongs to who creates it, who removes it when that fails.
	Create(ctx context.Context, path string) (io.WriteCloser, error)
	// Rename moves a file or folder at once. A file in its place is replaced, a folder with something in it is not.
	Rename(ctx context.Context, from, to string) error
	// Remove takes away a file, or a folder with all that is in it.
	Remove(ctx context.Context, path string) error
	// MkdirAll makes a folder and those above it; one that is there is as good.
	MkdirAll(ctx context.Context, path string) error
	// Prune takes away a folder if nothing is in it. A folder that has something in it stays, which is no error.
	Prune(ctx context.Context, path string) error
}

// Info describes a file or folder.
type Info struct {
	Path    string
	Size    int64     // bytes; -1: not known before it is read
	ModTime time.Time // zero: not known
	Dir     bool
	// Validator changes when the content does; empty where the store has none. For http it is a strong ETag, or a
	// Last-Modified that can serve as one (RFC 9110, 8.8.2.2).
	Validator string
}

// Position is where to begin reading.
type Position struct {
	Offset int64 // bytes
	// Validator is that of the version of which the bytes before Offset are. Empty: any.
	Validator string
}

// Content is an opened file.
type Content struct {
	io.ReadCloser
	Info   Info  // of the version that is read; Size is that of the whole file
	Offset int64 // of the first byte that will be read
}

// Opener makes the store that a URL is in, and gives the URL's path in it.
type Opener func(ctx context.Context, url string) (Store, string, error)

// Set are the stores that there are, by the scheme of a URL in lower case.
type Set map[string]Opener

var schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// SchemeOf is the scheme of a URL in lower case with its colon, such as `hdfs:`; empty for a path.
func SchemeOf(url string) string { return strings.ToLower(schemeForm.FindString(url)) }

// Open finds the store of a URL and the URL's path in it. A path without a scheme is a file. A scheme that there is no
// store for is an ErrScheme.
func (s Set) Open(ctx context.Context, url string) (Store, string, error) {
	name := cmp.Or(strings.TrimSuffix(SchemeOf(url), ":"), "file")
	open, ok := s[name]
	if !ok {
		have := strings.Join(slices.Sorted(maps.Keys(s)), ", ")
		return nil, "", &Error{
			Op: "open", URL: Printable(url), Err: fmt.Errorf("%w: got %s:, want one of %s", ErrScheme, name, have),
			Hint: "a local file whose name has a colon is written ./NAME",
		}
	}
	return open(ctx, url)
}
