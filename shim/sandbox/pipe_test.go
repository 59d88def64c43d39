package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// A process has the stdin and stdout that it is given, and no log of them; a restart has its own.
func TestOwnStdio(t *testing.T) {
	ownStdio(t, processGuard(t, Options{}))
}

func TestOwnStdioWithACgroup(t *testing.T) {
	confined(t, cgroup.Limits{Memory: 64 << 20}, func(t *testing.T, r *rig) { ownStdio(t, r.Guard) })
}

func ownStdio(t *testing.T, g *Guard) {
	t.Helper()
	for attempt := range 2 {
		stdin, feed, err := StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, out, err := StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		start(t, g, Spec{
			Argv: []string{"/bin/sh", "-c", "echo to the log >&2; exec cat"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"},
			Stdin: stdin, Stdout: stdout, Attempt: attempt,
		})
		closeAll([]*os.File{stdin, stdout})
		text := strings.Repeat("a line\n", 1<<18) + strconv.Itoa(attempt)
		fed := make(chan error, 1)
		go func() {
			_, err := io.WriteString(feed, text)
			fed <- errors.Join(err, feed.Close())
		}()
		got, err := io.ReadAll(out)
		if err = errors.Join(err, <-fed, out.Close()); err != nil || string(got) != text {
			t.Errorf("attempt %d: got %d bytes, %v, want %d", attempt, len(got), err, len(text))
		}
		await[Empty](t, g)
		if logged := readFile(t, g.options.LogDir, "stdout.log"); logged != "" {
			t.Errorf("attempt %d: stdout.log has %q", attempt, logged)
		}
	}
	if logged := readFile(t, g.options.LogDir, "stderr.log"); logged != "to the log\nto the log\n" {
		t.Errorf("stderr.log has %q", logged)
	}
}

// A process that reads no more has who feeds it fail with EPIPE, while it lives or when it has ended.
func TestStdinThatIsClosed(t *testing.T) {
	for _, script := range []string{"head -c 3 > /dev/null", "exec <&-; read x < fifo"} {
		g := processGuard(t, Options{})
		dir := fifoDir(t)
		stdin, feed, err := StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		start(t, g, Spec{Argv: []string{"sh", "-c", script}, Dir: dir, Stdin: stdin})
		closeAll([]*os.File{stdin})
		_, err = feed.Write(bytes.Repeat([]byte("x"), 1<<20))
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: got %v, want EPIPE", script, err)
		}
		if err := errors.Join(feed.Close(), g.Kill()); err != nil {
			t.Error(err)
		}
		await[Empty](t, g)
	}
}

// Nobody waits for one who holds the process's stdout open elsewhere.
func TestOutletIsOver(t *testing.T) {
	g := processGuard(t, Options{})
	stdout, out, err := StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	held, err := unix.Dup(int(stdout.Fd())) // as if it had been passed on
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(held) })
	start(t, g, Spec{Argv: []string{"sh", "-c", "echo said"}, Stdout: stdout})
	closeAll([]*os.File{stdout})
	await[Empty](t, g)
	if err := out.Over(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out)
	if err = errors.Join(err, out.Close()); err != nil || string(got) != "said\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
