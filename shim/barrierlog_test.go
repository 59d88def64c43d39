package shim

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
)

// lockedBuffer is read while it is written to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Whom the agent waits for stands in its log after a second and then each minute, until the barrier opens.
func TestBarrierLog(t *testing.T) {
	for _, c := range []struct {
		name, want string
		absent     []string
		asked      bool
		err        error
	}{
		{"missing", "missing=worker-1, worker-2", []string{"worker-1", "worker-2"}, true, nil},
		{"all there", "some still prepare", nil, true, nil},
		{"a large gang", "the conductor's agent logs", nil, false, nil},
		{"no answer", "the registry does not say who is missing", nil, true, errors.New("refused")},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				var now atomic.Pointer[machine.State]
				b := newBarrierLog(func() machine.State { return *now.Load() },
					func(context.Context) ([]string, bool, error) { return c.absent, c.asked, c.err },
					slog.New(slog.NewTextHandler(&log, nil)))
				be := func(phase machine.Phase, act registry.Act) {
					now.Store(&machine.State{Phase: phase, Directive: registry.Directive{Act: act}})
					b.moved()
					synctest.Wait()
				}
				end := b.start(t.Context())
				defer end()
				lines := func(after time.Duration, want int) {
					t.Helper()
					time.Sleep(after)
					synctest.Wait()
					text := strings.ReplaceAll(log.String(), `"`, "")
					if got := strings.Count(text, c.want); got != want || strings.Count(text, "\n") != want {
						t.Fatalf("got %d lines, want %d with %q:\n%s", got, want, c.want, text)
					}
				}
				be(machine.Staging, registry.ActWait)
				lines(time.Hour, 0)
				be(machine.Waiting, registry.ActWait)
				lines(firstWait-time.Nanosecond, 0)
				lines(time.Nanosecond, 1)
				be(machine.Waiting, registry.ActWait) // another event of the same wait
				lines(nextWait, 2)
				be(machine.Running, registry.ActRun)
				lines(time.Hour, 2)
				be(machine.Waiting, registry.ActWait)
				lines(firstWait, 3)
			})
		})
	}
}
