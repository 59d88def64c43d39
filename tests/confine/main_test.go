// Package confine_test holds the product to what it promises of confinement, by the built binary and its command line:
// limits, devices, users, ends, images, GPUs and the operator's policy, in each engine that holds the promise. What is
// asserted is what users and operators see: exit codes, results, logs, and what their own programs find. The programs are
// in testdata.
package confine_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
)

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
var watchdog = 3 * time.Minute

// atOnce is how many tests run at a time: they wait more than they work.
const atOnce = 6

// Programs under test, in folders that every user of this host can enter. Set before the first test, never after.
var (
	muster string
	mocked string // another muster, whose muster-gpu finds 8 GPUs that are not there
	images string // a cache of images that tests share
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == hostVerb {
		os.Exit(hostMain(os.Args[2:]))
	}
	flag.Parse()
	os.Exit(binary.Main(func(built string) int {
		code, err := in(built, m)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}))
}

// in runs the tests with the programs laid out.
func in(built string, m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "muster-confine-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := lay(built, dir); err != nil {
		return 1, err
	}
	if os.Getenv("MUSTER_MACHINE") != "" { // an emulated one: each instruction takes its time
		watchdog *= 4
		return m.Run(), nil
	}
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < atOnce {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// lay puts the programs where they are used.
func lay(built, dir string) error {
	muster, mocked, images = filepath.Join(dir, "bin", "muster"), filepath.Join(dir, "mocked", "muster"), filepath.Join(dir, "cache")
	for _, folder := range []string{dir, filepath.Dir(muster), filepath.Dir(mocked), images} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // other users run what is in it
			return err
		}
	}
	for _, to := range []string{muster, mocked} {
		if err := copyFile(built, to); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(filepath.Dir(built), "muster-gpu"), filepath.Join(dir, "bin", "muster-gpu")); err != nil {
		return err
	}
	if named := os.Getenv("MUSTER_GPUHELPER"); named != "" { // where there is no Go
		return copyFile(named, filepath.Join(dir, "mocked", "muster-gpu"))
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "mocked", "muster-gpu"), checkout+"/tests/gpuhelper")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w\n%s", build.Args, err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755) //nolint:gosec // a program
}

// await looks until what is waited for is there.
func await(t testing.TB, what string, see func() bool) {
	t.Helper()
	end := time.Now().Add(watchdog)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !see() {
		if time.Now().After(end) {
			t.Fatalf("not seen within %s: %s", watchdog, what)
		}
		<-look.C
	}
}

// read is a file's text, empty while it is not there.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
