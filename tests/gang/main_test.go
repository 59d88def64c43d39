package gang

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
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 60 * time.Second

// atOnce is how many gangs play at a time: they wait much more than they work.
const atOnce = 8

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == puppetVerb {
		puppetMain()
		os.Exit(99)
	}
	flag.Parse()
	code, err := play(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// play builds muster, unless MUSTER_BINARY names one, and runs the tests.
func play(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "muster-gang-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if muster = os.Getenv("MUSTER_BINARY"); muster == "" {
		muster = filepath.Join(dir, "muster")
		if err := build(muster); err != nil {
			return 1, err
		}
	}
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < atOnce {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

func build(to string) error {
	root := filepath.Join("..", "..")
	for _, argv := range [][]string{
		{"make", "--no-print-directory", "-C", "shim/sandbox/guard"},
		{"go", "build", "-o", to, "./cmd/muster"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w\n%s", argv, err, out)
		}
	}
	return nil
}

// await looks again and again until see says yes. What was waited for stands in the failure.
func await(t testing.TB, what string, see func() bool) {
	t.Helper()
	awaitFor(t, watchdog, what, see)
}

// awaitFor is await for what by its nature takes longer than the watchdog.
func awaitFor(t testing.TB, limit time.Duration, what string, see func() bool) {
	t.Helper()
	if see() {
		return
	}
	poll := time.NewTicker(25 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(limit)
	defer dog.Stop()
	for {
		select {
		case <-poll.C:
			if see() {
				return
			}
		case <-dog.C:
			t.Fatalf("not seen within %s: %s", limit, what)
		}
	}
}
