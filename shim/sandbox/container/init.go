package container

import (
	"io"
	"os"
	"runtime"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // enters the namespaces before the Go runtime is up
	"github.com/sirupsen/logrus"
)

// The main goroutine keeps the main thread, which only an init can arrange. libcontainer enters the mount namespace of
// a container with a thread that then ends. The main thread cannot end: were it that one, /proc/self of this process
// would show the container, and the container's mounts would stay as long as this process.
func init() { runtime.LockOSThread() }

// initialised says that Init was called: without it a container's first process would run main once more.
var initialised bool

// Init must be the first call of main: a container is entered by this program, started once more, and in that process
// Init never returns. No subcommand is called init, and the variable is one that only libcontainer and this package
// set.
func Init() {
	initialised = true
	if len(os.Args) == 2 && os.Args[1] == "init" {
		switch {
		case os.Getenv("_LIBCONTAINER_INITPIPE") != "":
			libcontainer.Init()
		case os.Getenv(idsVariable) != "":
			_, _ = io.Copy(io.Discard, os.Stdin) // until the maker has what it needs
			os.Exit(0)                           //nolint:forbidigo // this process is for that alone
		case os.Getenv(probeVariable) != "":
			os.Exit(probeMounts(os.Stdout)) //nolint:forbidigo // this process is for that alone: main must not go on
		}
	}
	// libcontainer must not write to the agent's stderr: what matters of its warnings is in its errors too.
	logrus.SetOutput(io.Discard)
}
