// Package tensorflow_test runs TensorFlow's app packages as their users do: the built muster, the
// command line, real TensorFlow, real Consul. Enters a checkout; what is asserted is what the
// processes printed and what muster says of the run. Every wait is for a line or an answer, and a
// watchdog ends only a test that has gone wrong.
package tensorflow_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// watchdog bounds one wait: TensorFlow's import takes seconds of every process, on busy cores a minute.
const watchdog = 120 * time.Second

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "muster-tf")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	muster = filepath.Join(dir, "muster")
	build := exec.Command("go", "build", "-o", muster, "./cmd/muster")
	build.Dir = checkout
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build cmd/muster: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
