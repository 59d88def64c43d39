package catalog

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed all:handwriting all:horovod all:jax all:jupyter all:keras all:lightgbm
//go:embed all:mpi all:mxnet all:pytorch all:tensorflow all:vpc all:xgboost
var files embed.FS

// ErrUnknown is wrapped by the error of Open for a name that is not in the catalog.
var ErrUnknown = errors.New("not in the catalog")

// FS returns the whole catalog: one folder for each app package.
func FS() fs.FS { return files }

// Names returns the names of all app packages, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("catalog: embedded files have no root: %v", err))
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// Open returns the files of the app package called name, rooted at its metainfo.json.
// The error for an unknown name wraps ErrUnknown and lists the known ones.
func Open(name string) (fs.FS, error) {
	known := Names()
	if !slices.Contains(known, name) {
		return nil, fmt.Errorf("open catalog package %q: %w; known: %s", name, ErrUnknown, strings.Join(known, ", "))
	}
	return fs.Sub(files, name)
}
