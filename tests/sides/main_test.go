// Package sides_test holds the product to what it promises of side processes, by the built binary and its command line: they
// run beside an instance's process, come back where others look for them, and weigh nothing in the end.
package sides_test

import (
	"os"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 60 * time.Second

// muster is the program under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// read is a file's text, empty while it is not there.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
