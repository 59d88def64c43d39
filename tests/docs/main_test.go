// Package docs_test holds the documents to the product, as their readers would: it types in what the README says, lays
// out the manual's examples, follows the links, and runs the demonstration. Set MUSTER_BINARY to try a binary that is
// there already.
package docs_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/need"
)

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// watchdog ends a command that has gone wrong and is part of no promise.
const watchdog = 5 * time.Minute

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// read is a file of the checkout.
func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// python skips where there is none.
func python(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs Python 3")
	}
}

// desk is where a reader sits: a folder with bin/muster in it, a home, and a state folder of its own.
type desk struct {
	t   testing.TB
	dir string
}

func newDesk(t testing.TB) desk {
	t.Helper()
	d := desk{t, folder.Temp(t, "md-")}
	d.must(os.MkdirAll(filepath.Join(d.dir, "bin"), 0o755))
	d.must(os.MkdirAll(filepath.Join(d.dir, ".home"), 0o755))
	target, err := filepath.Abs(muster)
	d.must(err)
	d.must(os.Symlink(target, filepath.Join(d.dir, "bin", "muster")))
	return d
}

func (d desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// write makes a file and the folders above it.
func (d desk) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	d.must(os.MkdirAll(filepath.Dir(path), 0o755))
	d.must(os.WriteFile(path, []byte(text), 0o644))
}

// types runs a line of shell and returns both outputs in the order in which they came, and the exit code.
func (d desk) types(line string) (string, int) {
	d.t.Helper()
	return command(d.t, d.dir, d.environ(), "sh", "-c", line)
}

func (d desk) environ() []string {
	return append(os.Environ(), "MUSTER_AGENT_STATE_DIR="+filepath.Join(d.dir, ".state"), "HOME="+filepath.Join(d.dir, ".home"), "TZ=UTC")
}

// leaves runs a line of shell beside the next ones, until the test's end at most.
func (d desk) leaves(line string) {
	d.t.Helper()
	// The test's context ends before its clean-up: a run whose verdict was read must end its agents itself.
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.t.Context()))
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = d.dir, d.environ()
	p, err := leash.Start(cmd, 2*watchdog)
	d.must(err)
	d.t.Cleanup(func() {
		end := time.AfterFunc(watchdog/2, cancel)
		_ = p.Wait() // the next lines say what came of it
		end.Stop()
		cancel()
	})
}

// command runs a program on a leash.
func command(t testing.TB, dir string, env []string, argv ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	err := leash.Run(cmd, watchdog)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", argv, err)
	}
	return said.String(), cmd.ProcessState.ExitCode()
}
