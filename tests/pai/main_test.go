// Package pai_test runs job files of PAI and QIZHI as their users do: the built muster, the command line, real agents. What is
// asserted is what the tasks found, the result, the exit code and what is left. Every wait is for an end or a line, and a
// watchdog ends only a test that has gone wrong.
package pai_test

import (
	"os"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise: on busy cores the import of
// TensorFlow takes a minute.
const watchdog = 120 * time.Second

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
