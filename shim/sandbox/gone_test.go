package sandbox

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// TestStartOfAGuardThatDies: a start that was under way when its guard was killed is over only if nothing is left.
func TestStartOfAGuardThatDies(t *testing.T) {
	g := processGuardOpen(t, Options{})
	if err := syscall.Kill(g.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	outcome := make(chan error)
	go func() {
		_, err := g.Start(Spec{Attempt: 1, Argv: []string{"sleep", "1000"}})
		outcome <- err
	}()
	for now, _, _ := g.starts.current(); now != starting; now, _, _ = g.starts.current() {
		runtime.Gosched()
	}
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-outcome; !errors.Is(err, ErrGone) || errors.Is(err, ErrLeft) {
		t.Errorf("nothing is left: %v, want %v alone", err, ErrGone)
	}
	if e := await[Gone](t, g); len(e.Left) > 0 {
		t.Errorf("gone %+v", e)
	}
	if err := goneError(nil, errors.New("killed"), false, []proc.StuckProcess{{PID: 7, State: 'D'}}); !errors.Is(err, ErrGone) || !errors.Is(err, ErrLeft) {
		t.Errorf("one is left: %v, want %v and %v", err, ErrGone, ErrLeft)
	}
}
