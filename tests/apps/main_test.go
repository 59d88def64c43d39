package apps

import (
	"os"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
)

var muster string // the program under test

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}
