package sandbox

import (
	"context"
	"errors"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// A parking that is called off while the guard begins sees the guard's end, and does not wait until it has to think it stuck.
func TestStartOfAGuardThatIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		g, err := Process{}.StartGuard(ctx, Options{LogDir: t.TempDir()})
		if err == nil { // its first word was as quick
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if stuck, ok := errors.AsType[*proc.StuckError](err); ok || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v (%v), want what called it off and nothing else", err, stuck)
		}
	}
}
