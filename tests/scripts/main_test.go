// Package scripts_test holds the product to what it promises to packages that run by scripts of their own, by the built
// binary and its command line: a package in the shape of Slider's (testdata/kvstore), one of shell commands only, and
// small ones that do one thing wrong. What is asserted is what authors and operators see: exit codes, words, files,
// exports, and that nothing is left.
package scripts_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 2 * time.Minute

// atOnce is how many tests run at a time: they wait more than they work.
const atOnce = 6

// Set before the first test, never after.
var (
	muster string // the program under test, where every user of this host can run it
	images string // a cache of images
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(binary.Main(func(built string) int {
		dir, err := os.MkdirTemp("", "muster-scripts-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := lay(built, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}))
}

// lay puts the program where users can run it, and has enough tests run at a time.
func lay(built, dir string) error {
	muster, images = filepath.Join(dir, "bin", "muster"), filepath.Join(dir, "cache")
	for _, folder := range []string{dir, filepath.Dir(muster), images} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // other users run what is in it
			return err
		}
	}
	for _, name := range []string{"muster", "muster-gpu"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(built), name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "bin", name), text, 0o755); err != nil { //nolint:gosec // a program
			return err
		}
	}
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < atOnce {
		return flag.Set("test.parallel", strconv.Itoa(atOnce))
	}
	return nil
}

// await looks until what is waited for is there.
func await(t testing.TB, what string, see func() bool) {
	t.Helper()
	end := time.Now().Add(watchdog)
	look := time.NewTicker(20 * time.Millisecond)
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
