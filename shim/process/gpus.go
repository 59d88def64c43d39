package process

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/muster-agent/muster/shim/sandbox"
)

// endForGPU kills the process; false: there is none, or it cannot be killed.
func (p *Process) endForGPU(guard *sandbox.Guard) bool {
	err := guard.Signal(syscall.SIGKILL)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Log.Warn("process not killed after the fault of its GPU", "err", err)
	}
	return err == nil
}

// EndForGPU ends the process, and waits for its end or that of ctx. Without a process it does nothing: the next start
// checks the devices first, and a start in progress checks them again when it has begun.
func (p *Process) EndForGPU(ctx context.Context) {
	over := p.Over()
	if over == nil || !p.endForGPU(p.guards.now()) {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}
