package container

import (
	"io"
	"os"
	"runtime"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // enters the namespaces before the Go runtime is up
	"github.com/sirupsen/logrus"
)

// The main goroutine keeps the main thread, and only an init can see to that. libcontainer enters the mount namespace of
// a container with a thread that it throws away then. The main thread cannot be thrown away: were it that one, all
// that /proc/self says of us would be the container's, and its mounts would stay as long as we do.
func init() { runtime.LockOSThread() }

// opened says that Init was called: without it a container's first process would run main once more.
var initialised bool

// Init is the door through which this program enters a container: it must be the first call of main. A
// process that was started to make a container never returns from it. No subcommand is called init, and
// the variable is one that only libcontainer and Probe set.
func Init() {
	initialised = true
	if len(os.Args) == 2 && os.Args[1] == "init" {
		switch {
		case os.Getenv("_LIBCONTAINER_INITPIPE") != "":
			libcontainer.Init()
		case os.Getenv(probeVariable) != "":
			os.Exit(probeMounts(os.Stdout)) //nolint:forbidigo // this process is for that alone: main must not go on
		}
	}
	// The agent's stderr is not libcontainer's: what matters of its warnings is in the errors too.
	logrus.SetOutput(io.Discard)
}
