package sandbox

import (
	"context"
	"os"
)

// Engine is one way to confine a process.
type Engine interface {
	// Name is the name in the plan: process.
	Name() string
	// StartGuard starts a guard that waits for its first Start. ctx bounds the making only.
	StartGuard(ctx context.Context, o Options) (*Guard, error)
	// Cannot says which limits this engine does not hold here, by their names in the JSON of plan.Limits, and why.
	Cannot() map[string]string
}

// Process is the engine that needs nothing: a session, a subreaper, resource limits, and a watchdog of memory.
type Process struct{}

// Name is the name in the plan.
func (Process) Name() string { return NameProcess }

// StartGuard starts a guard beside the agent.
func (Process) StartGuard(ctx context.Context, o Options) (*Guard, error) {
	var w *memoryWatch
	g, err := startGuard(ctx, o, func(lifeline, socket, exe *os.File) (child, boundary, error) {
		process, err := execGuard(o.Confine.IDs, lifeline, socket, exe)
		if err != nil {
			return nil, nil, err
		}
		w = watchMemory(process.Pid, o.Confine.Limits.Memory)
		return direct{process}, w, nil
	})
	if err == nil {
		w.bind(g)
	}
	return g, err
}
