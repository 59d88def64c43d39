package gang

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
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
	os.Exit(binary.Main(func(built string) int {
		muster = built
		if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < atOnce {
			if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}))
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
