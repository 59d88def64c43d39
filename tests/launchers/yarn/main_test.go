// Package yarn_test runs apps on a real YARN by the jobs that muster makes for it: a service of YARN's service API, and the
// distributed shell's script. Packages, the agents' binary and checkpoints lie on HDFS, the gang meets in a real Consul, and
// what a container has is what YARN gives it.
package yarn_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 4 * time.Minute

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	// Subtests wait most of the time: more of them than there are processors go side by side.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return hadoop.Main(m)
	}))
}
