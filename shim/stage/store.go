package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/packages/fetch"
)

// Store is a place that data is kept in: a fetch.Store with folders that may be empty.
type Store interface {
	fetch.Store
	// MkdirAll makes a folder and those above it; one that is there is as good.
	MkdirAll(ctx context.Context, path string) error
	// Prune takes away a folder if nothing is in it. One that has something in it stays, which is no error.
	Prune(ctx context.Context, path string) error
}

// Opener makes the store that a URL is in, and gives the URL's path in it.
type Opener func(ctx context.Context, url string) (Store, string, error)

// Schemes are the stores that there are, by the scheme of a URL.
func Schemes() map[string]Opener { return map[string]Opener{"file": openFiles} }

// ErrNoStore is a URL whose scheme has no store.
var ErrNoStore = errors.New("there is no store for it")

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// Open finds the store of a URL and the URL's path in it; a path alone is one of this machine's.
func Open(ctx context.Context, url string) (Store, string, error) {
	name := strings.ToLower(strings.TrimSuffix(scheme.FindString(url), ":"))
	if name == "" {
		name = "file"
	}
	open, ok := Schemes()[name]
	if !ok {
		return nil, "", fmt.Errorf("%s: got %s:, want %s: or a path: %w", fetch.Printable(url), name, strings.Join(slices.Sorted(maps.Keys(Schemes())), ": or "), ErrNoStore)
	}
	return open(ctx, url)
}

// files are those of this machine.
type files struct{ fetch.Store }

func openFiles(ctx context.Context, url string) (Store, string, error) {
	store, path, err := fetch.Open(ctx, url, fetch.Options{})
	if err != nil {
		return nil, "", err
	}
	return files{store}, path, nil
}

func (files) MkdirAll(_ context.Context, path string) error {
	err := os.MkdirAll(path, 0o755)
	if errors.Is(err, fs.ErrNotExist) { // somebody pruned one of them meanwhile
		err = os.MkdirAll(path, 0o755)
	}
	return err
}

func (files) Prune(_ context.Context, path string) error {
	err := os.Remove(path)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Executable tells whether a file may be run: what is copied keeps it.
func (files) Executable(_ context.Context, path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
