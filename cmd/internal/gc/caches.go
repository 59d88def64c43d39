package gc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/packages/image"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/store/cache"
)

// Cached is something that takes room on the disk: an unpacked layer of an image, or a file that was fetched.
type Cached struct {
	What  string // its kind: "image layer" or "fetched file"
	Path  string
	Used  time.Time // when it was last asked for
	Bytes int64     // on the disk
}

// Caches finds what no agent holds and none has asked for since, and removes it unless dry. It is fetched or unpacked
// anew when it is wanted again.
func Caches(ctx context.Context, since time.Time, dry bool) ([]Cached, error) {
	top := cachedir.Default()
	unused := image.Clean
	if dry {
		unused = image.Unused
	}
	layers, err := unused(ctx, top, since)
	var found []Cached
	for _, l := range layers {
		found = append(found, Cached{What: "image layer", Path: l.Path, Used: l.Used, Bytes: l.Bytes})
	}
	if err != nil {
		return found, exit.With(exit.Forbidden, err)
	}
	dirs := []string{top}
	users, err := os.ReadDir(filepath.Join(top, "files")) // of data, for each user that it was fetched as
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, exit.With(exit.Forbidden, err)
	}
	for _, user := range users {
		dirs = append(dirs, filepath.Join(top, "files", user.Name()))
	}
	for _, dir := range dirs {
		files, err := cache.Clean(ctx, dir, cache.Keep{Since: since, Dry: dry})
		for _, f := range files {
			path := filepath.Join(dir, "fetch", "sha256", f.SHA256)
			found = append(found, Cached{What: "fetched file", Path: path, Used: f.Used, Bytes: f.Bytes})
		}
		if err != nil {
			return found, exit.With(exit.Forbidden, err)
		}
	}
	slices.SortFunc(found, func(a, b Cached) int { return a.Used.Compare(b.Used) })
	return found, nil
}
