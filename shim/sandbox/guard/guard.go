// Package guard is the small static program that stands between an agent and the process it runs, as bytes to execute,
// and the messages of its protocol. The program itself is C, in src; src/guard.h describes the protocol, and a test
// holds its constants equal to those here.
//
// The guard owns the processes that it starts, their logs and their death: it is their subreaper, kills them when the
// agent's end of its lifeline closes, and proves that none is left. The package owns nothing; package sandbox starts
// the program and exchanges the messages.
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
