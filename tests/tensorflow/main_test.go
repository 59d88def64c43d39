// Package tensorflow_test runs TensorFlow's app packages as their users do: the built muster, the
// command line, real TensorFlow, real Consul. Enters a checkout; what is asserted is what the
// processes printed and what muster says of the run. Every wait is for a line or an answer, and a
// watchdog ends only a test that has gone wrong.
package tensorflow_test

import (
	"os"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
)

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}
