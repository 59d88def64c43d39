package leash_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/leash"
)

// watchdog ends what is never over by itself, and a test that has gone wrong.
const watchdog = 2 * time.Minute

// TestRun has programs whose children hold their output. How far a script has come when its time is over does not matter.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, script string
		limit        time.Duration
		ends         bool
	}{
		{"ends", "sh -c 'echo $$'", watchdog, true},
		{"takes too long", "echo $$; exec sleep 1000", time.Second, false},
		{"leaves a child", "sleep 1000 & echo $!; exit 1", watchdog, false},
		{"leaves a child without its output", "sleep 1000 >/dev/null 2>&1 & echo $!; exit 0", watchdog, true},
		{"leaves a deaf child", "(trap '' TERM; exec sleep 1000) & echo $!; exit 1", watchdog, false},
		{"waits for its child", "sleep 1000 & echo $!; wait", time.Second, false},
		{"has a deaf child", "(trap '' TERM; exec sleep 1000) & echo $!; wait", time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			cmd := exec.CommandContext(t.Context(), "sh", "-c", c.script)
			cmd.Stdout = &out
			over := make(chan error, 1)
			go func() { over <- leash.Run(cmd, c.limit) }()
			var err error
			select {
			case err = <-over:
			case <-time.After(watchdog):
				t.Fatalf("not over after %s", watchdog)
			}
			var exit *exec.ExitError
			if err == nil != c.ends || err != nil && !errors.As(err, &exit) {
				t.Errorf("got %v, want an end by itself: %t", err, c.ends)
			}
			pid := strings.TrimSpace(out.String())
			for began := time.Now(); pid != "" && lives(pid); { // a process that is killed lets go of its files before it has ended
				if time.Since(began) > watchdog {
					t.Fatalf("%s lives", pid)
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// lives tells whether a process is there and has not ended.
func lives(pid string) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestNoSuchProgram(t *testing.T) {
	if err := leash.Run(exec.CommandContext(t.Context(), "/no/such/program"), watchdog); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
