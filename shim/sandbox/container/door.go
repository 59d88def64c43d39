package container

import (
	"io"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // enters the namespaces before the Go runtime is up
	"github.com/sirupsen/logrus"
)

// opened says that Init was called: without it a container's first process would run main once more.
var opened bool

// Init is the door through which this program enters a container: it must be the first call of main. A
// process that was started to make a container never returns from it. No subcommand is called init, and
// the variable is one that only libcontainer and Probe set.
func Init() {
	opened = true
	if len(os.Args) == 2 && os.Args[1] == "init" {
		switch {
		case os.Getenv("_LIBCONTAINER_INITPIPE") != "":
			libcontainer.Init()
		case os.Getenv(probeVariable) != "":
			os.Exit(tryHere(os.Stdout))
		}
	}
	// The agent's stderr is not libcontainer's: what matters of its warnings is in the errors too.
	logrus.SetOutput(io.Discard)
}
