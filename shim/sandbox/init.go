package sandbox

import "github.com/muster-agent/muster/shim/sandbox/container"

// Init is the door through which this program enters containers. It must be the first call of main, and of TestMain
// in tests that make containers: in a process that was started for a container it never returns.
func Init() { container.Init() }
