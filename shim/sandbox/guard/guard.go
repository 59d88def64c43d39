// Package guard is the small static program that stands between an agent and the process it runs,
// as bytes to execute, and the messages it speaks. The program itself is C, in src; its protocol is
// drawn in src/guard.h, whose constants a test holds equal to those here.
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
var ErrNotBuilt = errors.New("guard was not built: run make build")

// Open returns the guard program for this machine's architecture.
func Open() (fs.File, error) {
	f, err := built.Open("built/guard_" + runtime.GOARCH)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (for %s)", ErrNotBuilt, runtime.GOARCH)
	}
	return f, err
}
