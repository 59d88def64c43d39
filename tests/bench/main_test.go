package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	if len(os.Args) == 2 && os.Args[1] == runnerVerb {
		if err := runner(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "runner:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == clientsVerb {
		if err := runClients(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "protocol clients:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
