package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/console/consoletest"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/process"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/need"
)

// execAgent is as much of an agent as exec needs: a parked guard and the local API before it. It returns the state folder.
func execAgent(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), scriptWatchdog)
	defer cancel()
	g, err := sandbox.Process{}.StartGuard(ctx, sandbox.Options{LogDir: filepath.Join(dir, "log")})
	if errors.Is(err, guard.ErrNotBuilt) {
		need.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	p := process.New(ctx, process.Config{
		Log:  slog.New(slog.NewTextHandler(t.Output(), nil)),
		Plan: plan.Plan{Process: plan.Process{Cwd: dir, Env: map[string]string{"SAID": "hello", "PATH": os.Getenv("PATH")}}},
		Park: func(context.Context) (*sandbox.Guard, error) { return g, nil },
	})
	if err := p.StartGuard(ctx); err != nil {
		t.Fatal(err)
	}
	state := status.Dir(dir)
	if err := status.WriteJSON(filepath.Join(state.App("d1"), "worker-0.json"), status.InstanceFile{Version: 1, Pid: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	l, err := status.Listen(state.Socket("d1", "worker-0"))
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- status.Serve(serving, l, status.Handler(status.Source{LogDir: dir, Exec: p.Exec})) }()
	t.Cleanup(func() {
		end()
		if err := errors.Join(<-done, g.Close()); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// On a terminal exec is one: the program has a terminal of the same size, follows it, and is typed to.
func TestExecOnATerminal(t *testing.T) {
	state := execAgent(t)
	master, end := consoletest.Terminal(t, 77, 33)
	before, err := unix.IoctlGetTermios(int(end.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERM", "vt220")
	code := make(chan int, 1)
	go func() {
		code <- execute(t.Context(), []string{
			"exec", "--state-dir", state, "d1/worker-0", "--", "sh", "-c",
			`stty size; echo $SAID $TERM; until [ "$(stty size)" = "50 132" ]; do :; done; echo resized; read x; echo got $x; exit 9`,
		},
			console.Streams{In: end, Out: end, Err: end})
	}()
	dog := time.AfterFunc(scriptWatchdog, func() { _ = master.Close() })
	defer dog.Stop()
	shown := bufio.NewReader(master)
	want := func(line string) {
		t.Helper()
		if got, err := shown.ReadString('\n'); err != nil || strings.TrimSuffix(got, "\r\n") != line {
			t.Fatalf("terminal shows %q (%v), want %q", got, err, line)
		}
	}
	want("33 77")
	want("hello vt220")
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 132}); err != nil {
		t.Fatal(err)
	}
	// The kernel tells the foreground of that terminal, which a test is not.
	if err := unix.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	want("resized")
	if _, err := io.WriteString(master, "words\r"); err != nil {
		t.Fatal(err)
	}
	want("words") // echoed once, by the program's terminal
	want("got words")
	select {
	case got := <-code:
		if got != 9 {
			t.Errorf("exit code %d, want 9", got)
		}
	case <-time.After(scriptWatchdog):
		t.Fatal("exec does not end")
	}
	after, err := unix.IoctlGetTermios(int(end.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if *after != *before {
		t.Errorf("the terminal is left as %+v, want %+v", *after, *before)
	}
	_ = end.Close() // nothing is to be written
}

// On a terminal top draws until q is typed, and leaves the terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	master, end := consoletest.Terminal(t, 80, 24)
	before, err := unix.IoctlGetTermios(int(end.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	code := make(chan int, 1)
	go func() {
		code <- execute(t.Context(), []string{"top", "--state-dir", t.TempDir()}, console.Streams{In: end, Out: end, Err: end})
	}()
	dog := time.AfterFunc(scriptWatchdog, func() { _ = master.Close() })
	defer dog.Stop()
	shown := bufio.NewReader(master)
	if got, err := shown.ReadString('\n'); err != nil || !strings.Contains(got, "\x1b[?1049h") || !strings.Contains(got, "nothing runs") {
		t.Fatalf("terminal shows %q (%v)", got, err)
	}
	if _, err := io.WriteString(master, "xq"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	if got, err := shown.ReadString('l'); err != nil || !strings.HasSuffix(got, "l") {
		t.Errorf("terminal shows %q (%v), want its first screen again", got, err)
	}
	if after, err := unix.IoctlGetTermios(int(end.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("the terminal is left as %+v (%v), want %+v", after, err, *before)
	}
}

// With -t a program that reads a file has a terminal too, and finds the file's end.
func TestExecTerminalWithoutOne(t *testing.T) {
	state := execAgent(t)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"terminal", []string{"-t"}, "a line\r\n24 80\r\n<a line>\r\n"},
		{"input is not asked for", []string{"-i=false"}, "stty: 'standard input': Inappropriate ioctl for device\n<>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			args := append([]string{"exec", "--state-dir", state, "d1/worker-0"}, c.args...)
			code := execute(t.Context(), append(args, "--", "sh", "-c", `read x; stty size 2>&1; echo "<$x>"; cat`),
				console.Streams{In: strings.NewReader("a line\n"), Out: &out, Err: t.Output()})
			if code != 0 || out.String() != c.want {
				t.Errorf("exit code %d, says %q, want %q", code, out.String(), c.want)
			}
		})
	}
}
