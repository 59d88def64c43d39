package history

import (
	"flag"
	"os"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
)

// Flags of the schedule.
var (
	seedFlag   = flag.Uint64("seed", 0, "seed of the schedule of faults; 0: another one each time")
	faultsFlag = flag.String("faults", "", "comma-separated kinds of faults; empty: all that the test has")
	lengthFlag = flag.Duration("length", 0, "how long faults are made; 0: as long as the test has")
	agentsFlag = flag.Int("agents", 0, "how many agents; 0: as many as the test has")
	checkFlag  = flag.String("check", "", "folder of a kept history, which is checked again in place of a new one")
	keepFlag   = flag.String("keep", "", "folder that keeps the history and all logs; empty: they go with the test")
)

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == puppetVerb {
		os.Exit(puppet())
	}
	flag.Parse()
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}
