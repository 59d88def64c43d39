package guard

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

//go:generate make

//go:embed all:built
var built embed.FS

// ErrNotBuilt says that this binary was compiled before the guard was.
var ErrNotBuilt = errors.New("guard was not built: run make guard in the checkout of muster that this " +
	"program is built from")

// Open returns the guard program for this machine's architecture.
func Open() (fs.File, error) {
	f, err := built.Open("built/guard_" + runtime.GOARCH)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (for %s)", ErrNotBuilt, runtime.GOARCH)
	}
	return f, err
}
