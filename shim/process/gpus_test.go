package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/tests/need"
)

// A device that failed while a process began, after it was looked at, ends the process.
func TestFaultWhileItBegins(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g, err := sandbox.Process{}.StartGuard(ctx, sandbox.Options{LogDir: filepath.Join(t.TempDir(), "log")})
	if errors.Is(err, guard.ErrNotBuilt) {
		need.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	p := New(t.Context(), Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if _, err := g.Start(sandbox.Spec{Attempt: 1, Argv: []string{"sleep", "1000"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	p.endForGPU(g)
	for {
		select {
		case e := <-g.Events():
			if exited, ok := e.(sandbox.Exited); ok {
				if exited.Exit.Signal != int(syscall.SIGKILL) {
					t.Errorf("it ended by %+v, want SIGKILL", exited.Exit)
				}
				return
			}
		case <-ctx.Done():
			t.Fatal("the process runs on with a faulty GPU")
		}
	}
}
