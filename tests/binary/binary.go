// Package binary gives black-box tests the product's programs.
package binary

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// With builds muster and muster-gpu, unless MUSTER_BINARY names a muster, and runs f with its path, absolute;
// muster-gpu lies beside it. It returns what f does.
func With(f func(muster string) int) (code int, err error) {
	if named := os.Getenv("MUSTER_BINARY"); named != "" {
		path, err := filepath.Abs(named)
		if err != nil {
			return 1, err
		}
		return f(path), nil
	}
	dir, err := os.MkdirTemp("", "muster-binary-")
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil { //nolint:gosec // processes of any user may run it
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, here, _, _ := runtime.Caller(0)
	build := exec.Command(filepath.Join(filepath.Dir(here), "../../scripts/build"), dir)
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%q: %w\n%s", build.Args, err, out)
	}
	return f(filepath.Join(dir, "muster")), nil
}

// Main is the whole of a TestMain whose tests need the programs.
func Main(f func(muster string) int) int {
	if err := errors.Join(openHome(), openSelf()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err := With(f)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
