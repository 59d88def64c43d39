package sandbox

import (
	"context"
	"os"

	"github.com/muster-agent/muster/shim/plan"
)

// Engine is one way to confine a process.
type Engine interface {
	// Name is the word of the plan: process.
	Name() string
	// Park starts a guard that waits for its first Start.
	Park(ctx context.Context, o Options) (*Guard, error)
	// Unenforced names the limits that this engine does not hold, and why.
	Unenforced(l plan.Limits) []plan.Unenforced
}

// Process is the engine that needs nothing: a session, a subreaper, resource limits.
type Process struct{}

// Name is the word of the plan.
func (Process) Name() string { return "process" }

// Park starts a guard beside the agent.
func (Process) Park(ctx context.Context, o Options) (*Guard, error) {
	return park(ctx, o, func(lifeline, socket, exe *os.File) (child, boundary, error) {
		process, err := execGuard(lifeline, socket, exe)
		return direct{process}, nothing{}, err
	})
}
