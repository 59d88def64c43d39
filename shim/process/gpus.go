package process

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/muster-agent/muster/shim/sandbox"
)

// endForGPU kills the process; false: there is none, or it cannot be.
func (p *Process) endForGPU(guard *sandbox.Guard) bool {
	err := guard.Signal(syscall.SIGKILL)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Log.Warn("end the process for its GPU", "err", err)
	}
	return err == nil
}

// EndForGPU ends the process, and waits until that has happened or ctx ends. Where none runs there is nothing to do:
// the next start looks at the devices first, and one that is under way looks again when it has begun.
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
