package sandbox

import "github.com/muster-agent/muster/shim/sandbox/container"

// Init must be the first call of main, and of TestMain in tests that make containers: a container is entered by this
// program, started once more, and in that process Init never returns.
func Init() { container.Init() }
