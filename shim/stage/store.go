package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/hdfs"
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

// Stores are the places that data is brought from and left at. The zero value reaches them as this process's environment
// says.
type Stores struct{ HDFS hdfs.Config }

// Schemes are the stores that there are, by the scheme of a URL.
func (s Stores) Schemes() map[string]Opener {
	return map[string]Opener{"file": openFiles, "http": openWeb, "https": openWeb, hdfs.Scheme: s.openHDFS}
}

// ErrNoStore is a URL whose scheme has no store.
var ErrNoStore = errors.New("there is no store for it")

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// Open finds the store of a URL and the URL's path in it; see Stores.Open.
func Open(ctx context.Context, url string) (Store, string, error) { return Stores{}.Open(ctx, url) }

// Open finds the store of a URL and the URL's path in it; a path alone is one of this machine's.
func (s Stores) Open(ctx context.Context, url string) (Store, string, error) {
	name := strings.ToLower(strings.TrimSuffix(scheme.FindString(url), ":"))
	if name == "" {
		name = "file"
	}
	all := s.Schemes()
	open, ok := all[name]
	if !ok {
		return nil, "", fmt.Errorf("%s: got %s:, want %s: or a path: %w", fetch.Printable(url), name, strings.Join(slices.Sorted(maps.Keys(all)), ": or "), ErrNoStore)
	}
	return open(ctx, url)
}

func (s Stores) openHDFS(ctx context.Context, url string) (Store, string, error) {
	store, path, err := s.HDFS.Open(ctx, url)
	if err != nil {
		return nil, "", err
	}
	return store, path, nil
}

// files are those of this machine.
type files struct {
	fetch.Store
	on fetch.Disk
}

// Files is the store of a disk.
func Files(on fetch.Disk) Store { return files{fetch.Files(on), on} }

func openFiles(ctx context.Context, url string) (Store, string, error) {
	_, path, err := fetch.Open(ctx, url, fetch.Options{})
	if err != nil {
		return nil, "", err
	}
	return Files(fetch.Machine{}), path, nil
}

func (f files) MkdirAll(_ context.Context, path string) error {
	err := f.on.MkdirAll(path, 0o755)
	if errors.Is(err, fs.ErrNotExist) { // somebody pruned one of them meanwhile
		err = f.on.MkdirAll(path, 0o755)
	}
	return err
}

func (f files) Prune(_ context.Context, path string) error {
	err := f.on.Remove(path)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Executable tells whether a file may be run: what is copied keeps it.
func (f files) Executable(_ context.Context, path string) bool {
	info, err := f.on.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// placeOf is a path of a store as people know it: with the filesystem, where there is more than this machine's.
func placeOf(store Store, path string) string {
	if located, ok := store.(fetch.Located); ok {
		return located.URL(path)
	}
	return path
}
