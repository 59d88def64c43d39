package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/tests/need"
)

// run starts a shell's script beside the app and closes its session at the test's end.
func run(t *testing.T, g *Guard, e ExecSpec, script string) *Session {
	t.Helper()
	e.Argv = []string{"sh", "-c", script}
	if e.Env == nil {
		e.Env = os.Environ()
	}
	if e.Dir == "" {
		e.Dir = "/"
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	s, err := g.Exec(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	return s
}

func ended(t *testing.T, s *Session) Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	x, err := s.Wait(ctx)
	if err != nil {
		t.Fatalf("session does not end: %v", err)
	}
	return x
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExecHasItsOwnStreams(t *testing.T) {
	g := processGuard(t, Options{})
	for _, app := range []bool{false, true} {
		if app {
			start(t, g, Spec{Argv: []string{"sleep", "1000"}})
		}
		s := run(t, g, ExecSpec{Env: []string{"NAME=value", "PATH=" + os.Getenv("PATH")}, Dir: "/usr"}, `pwd; echo $NAME; cat; echo err >&2; ls -l /proc/self/fd >&2; exit 7`)
		if _, err := io.WriteString(s.Stdin, strings.Repeat("0123456789abcde\n", 8192)); err != nil {
			t.Fatal(err)
		}
		if err := s.Stdin.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, s.Stdout), "/usr\nvalue\n"+strings.Repeat("0123456789abcde\n", 8192); got != want {
			t.Errorf("app %v: stdout has %d bytes, want %d", app, len(got), len(want))
		}
		got := text(t, s.Stderr)
		if !strings.HasPrefix(got, "err\n") || strings.Count(got, " -> ") != 4 || strings.Count(got, "pipe:") != 3 {
			t.Errorf("app %v: stderr %q, want three pipes and the folder", app, got)
		}
		if x := ended(t, s); deref(x.Code) != 7 || x.At.IsZero() {
			t.Errorf("app %v: %+v", app, x)
		}
		if err := s.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("signal after the end: %v", err)
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	await[Exited](t, g)
	await[Empty](t, g)
	if got := readFile(t, g.options.LogDir, "stdout.log"); got != "" {
		t.Errorf("the app's log has %q", got)
	}
}

func TestExecOnATerminal(t *testing.T) {
	g := processGuard(t, Options{})
	// The session's user owns the terminal, so that it opens by name too.
	s := run(t, g, ExecSpec{Terminal: &Size{}, User: nobody(t)}, `ps -o stat= -p $$ | tr -d ' '; : >$(tty) && echo mine; ls /proc/self/fd | wc -l`)
	// It leads its session (s) in the foreground (+); 0, 1, 2 and the folder are all descriptors.
	if got, want := text(t, s.Stdout), "Ss+\r\nmine\r\n4\r\n"; got != want {
		t.Errorf("terminal says %q, want %q", got, want)
	}
	s = run(t, g, ExecSpec{Terminal: &Size{Rows: 33, Columns: 77}}, "exec "+self(t)+" as-typist")
	lines := bufio.NewScanner(s.Stdout)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("terminal ends: %v", lines.Err())
		}
		return strings.TrimSuffix(lines.Text(), "\r")
	}
	if got := next(); got != "size 33 77" {
		t.Errorf("at first: %q", got)
	}
	if err := s.Resize(Size{Rows: 50, Columns: 132}); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "size 50 132" {
		t.Errorf("after the resize: %q", got)
	}
	if _, err := io.WriteString(s.Stdin, "a line\nrest\n"); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "got a line" {
		t.Errorf("after the line: %q", got)
	}
	if got := next(); got != "got rest" {
		t.Errorf("after the rest: %q", got)
	}
	if err := s.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("at the end: %q, %v", lines.Text(), lines.Err())
	}
	if x := ended(t, s); deref(x.Code) != 3 {
		t.Errorf("%+v", x)
	}
}

// asTypist says the size of its terminal, at first and whenever it changes, and the lines that are typed.
func asTypist([]string) error {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	mode, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	mode.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(0, unix.TCSETS, mode); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for typed := bufio.NewScanner(os.Stdin); typed.Scan(); {
			lines <- typed.Text()
		}
	}()
	for changed <- syscall.SIGWINCH; ; {
		select {
		case <-changed:
			size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
			if err != nil {
				return err
			}
			fmt.Println("size", size.Row, size.Col)
		case line, ok := <-lines:
			if !ok {
				os.Exit(3)
			}
			fmt.Println("got", line)
		}
	}
}

func TestExecTerminalHangsUp(t *testing.T) {
	g := processGuard(t, Options{})
	s := run(t, g, ExecSpec{Terminal: &Size{Rows: 1, Columns: 1}}, "exec sleep 1000")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if x := ended(t, s); x.Signal != int(syscall.SIGHUP) {
		t.Errorf("%+v", x)
	}
	s = run(t, g, ExecSpec{}, "sleep 1000; true")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if x := ended(t, s); x.Signal != int(syscall.SIGHUP) {
		t.Errorf("%+v", x)
	}
}

func TestExecSignalReachesItsGroup(t *testing.T) {
	g := processGuard(t, Options{})
	// The shell waits for its foreground child, which must hear too.
	s := run(t, g, ExecSpec{}, "trap 'echo heard; exit 5' TERM; sh -c 'echo ready; exec sleep 1000'; echo not reached")
	out := bufio.NewReader(s.Stdout)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := text(t, out); got != "heard\n" {
		t.Errorf("says %q", got)
	}
	if x := ended(t, s); deref(x.Code) != 5 {
		t.Errorf("%+v", x)
	}
}

// What a program leaves behind may hold its pipes for ever.
func TestExecOutputEndsWithTheProgram(t *testing.T) {
	for name, terminal := range map[string]*Size{"pipes": nil, "terminal": {Rows: 24, Columns: 80}} {
		t.Run(name, func(t *testing.T) {
			g := processGuard(t, Options{})
			for range 20 {
				s := run(t, g, ExecSpec{Terminal: terminal}, "(trap '' HUP; exec sleep 1000) & i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); done")
				got := strings.Fields(text(t, s.Stdout))
				if len(got) != 200 || got[199] != "199" {
					t.Fatalf("%d lines, the last %q", len(got), got[max(0, len(got)-1):])
				}
				ended(t, s)
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			await[Empty](t, g)
			if left := below(t, g.PID()); len(left) > 0 {
				t.Errorf("left %+v", left)
			}
		})
	}
}

func TestExecSaysWhyNot(t *testing.T) {
	g := processGuard(t, Options{})
	for _, c := range []struct {
		name string
		spec ExecSpec
		want string
		is   error
	}{
		{"PATH", ExecSpec{Argv: []string{"nosuchprogram"}, Env: []string{"PATH=/bin"}}, "run nosuchprogram: exec nosuchprogram: no such file or directory (looked for in PATH: install it on the host, or in the image that muster.image names)", fs.ErrNotExist},
		{"folder", ExecSpec{Argv: []string{"true"}, Dir: "/no/such/folder"}, "run true: chdir /no/such/folder: no such file or directory", fs.ErrNotExist},
		{"on a terminal", ExecSpec{Argv: []string{"/no/such/program"}, Terminal: &Size{}}, "run program: exec /no/such/program: no such file or directory", fs.ErrNotExist},
		{"empty", ExecSpec{}, "run: argv is empty", nil},
	} {
		_, err := g.Exec(t.Context(), c.spec)
		if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	var all []*Session
	for range guard.MostExecs {
		all = append(all, run(t, g, ExecSpec{}, "exec sleep 1000"))
	}
	want := fmt.Sprintf("run true: a process is still there: %d sessions live already", guard.MostExecs)
	if _, err := g.Exec(t.Context(), ExecSpec{Argv: []string{"true"}}); !errors.Is(err, errBusy) || err.Error() != want {
		t.Errorf("one too many: %v, want %s", err, want)
	}
	if err := all[3].Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, all[3])
	ended(t, run(t, g, ExecSpec{}, "true"))
}

func TestExecEndsWithTheApp(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*testing.T, *Guard)
	}{
		{"its own end", func(t *testing.T, g *Guard) {
			if err := g.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}},
		{"kill", func(t *testing.T, g *Guard) {
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := processGuard(t, Options{})
			early := run(t, g, ExecSpec{}, "trap '' TERM HUP; setsid sleep 1000 & exec sleep 1000")
			start(t, g, Spec{Attempt: 1, Argv: []string{"sleep", "1000"}})
			late := run(t, g, ExecSpec{Terminal: &Size{}}, "exec sleep 1000")
			c.end(t, g)
			await[Exited](t, g)
			await[Empty](t, g)
			for _, s := range []*Session{early, late} {
				select {
				case <-s.Done():
				default:
					t.Error("empty was told before the end of a session")
				}
				if x := ended(t, s); x.Signal != int(syscall.SIGKILL) {
					t.Errorf("%+v", x)
				}
			}
			// The guard takes the next of both.
			start(t, g, Spec{Attempt: 2, Argv: []string{"sleep", "1000"}})
			if x := ended(t, run(t, g, ExecSpec{}, "exit 4")); deref(x.Code) != 4 {
				t.Errorf("%+v", x)
			}
		})
	}
}

func TestExecEndsWithTheGuard(t *testing.T) {
	g := processGuard(t, Options{})
	s := run(t, g, ExecSpec{}, "exec sleep 1000")
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if x := ended(t, s); x.Signal != int(syscall.SIGKILL) {
		t.Errorf("closed: %+v", x)
	}
	if _, err := g.Exec(t.Context(), ExecSpec{Argv: []string{"true"}}); !errors.Is(err, ErrGone) {
		t.Errorf("exec after the end: %v", err)
	}
	g = processGuard(t, Options{})
	s = run(t, g, ExecSpec{Terminal: &Size{}}, "exec sleep 1000")
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await[Gone](t, g)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if x, err := s.Wait(ctx); !errors.Is(err, ErrGone) || x.Message == "" {
		t.Errorf("killed: %+v, %v", x, err)
	}
	if got := text(t, s.Stdout); got != "" {
		t.Errorf("says %q", got)
	}
}

// A failed start while a session lives is an end like any other; a start while it is dying is refused.
func TestStartBesideASession(t *testing.T) {
	g := processGuard(t, Options{})
	s := run(t, g, ExecSpec{}, "exec sleep 1000")
	if _, err := g.Start(Spec{Argv: []string{"/no/such/program"}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("start: %v", err)
	}
	if x := ended(t, s); x.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v", x)
	}
	for range 50 {
		run(t, g, ExecSpec{}, "exec sleep 1000")
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		_, err := g.Start(Spec{Attempt: 2, Argv: []string{"true"}})
		if err == nil {
			// Then nothing of it was left, and nothing killed the new one.
			if x := await[Exited](t, g); deref(x.Exit.Code) != 0 {
				t.Errorf("killed in place of the session: %+v", x)
			}
		} else if !errors.Is(err, errBusy) {
			t.Errorf("start: %v", err)
		}
		await[Empty](t, g)
	}
}

func TestExecOfAnImpatientCaller(t *testing.T) {
	g := processGuard(t, Options{})
	why := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for range 20 {
		if s, err := g.Exec(ctx, ExecSpec{Argv: []string{"sleep", "1000"}}); err == nil {
			_ = s.Close() // the answer came at once
		} else if !errors.Is(err, why) && !errors.Is(err, errBusy) {
			t.Fatal(err)
		}
	}
	// Each is hung up on, so that in the end nobody is left.
	for end := time.Now().Add(watchdog); len(below(t, g.PID())) > 0; {
		if time.Now().After(end) {
			t.Fatalf("left %+v", below(t, g.PID()))
		}
	}
}

// entered is a boundary that the guard stays out of.
type entered struct {
	noBoundary
	file *os.File
}

func (e entered) procs() *os.File { return e.file }

func TestProcessesEnterACgroupByThemselves(t *testing.T) {
	need.Root(t)
	group := "/sys/fs/cgroup/freezer/muster-test-procs-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no freezer of cgroup v1 here")
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	})
	procs, err := os.OpenFile(filepath.Join(group, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	g, err := startGuard(ctx, Options{LogDir: t.TempDir()}, func(lifeline, socket, exe *os.File) (child, boundary, error) {
		process, err := execGuard(nil, lifeline, socket, exe)
		return direct{process}, entered{file: procs}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	const script = "grep freezer /proc/self/cgroup; ls /proc/self/fd | wc -l"
	start(t, g, Spec{Argv: []string{"sh", "-c", script}})
	await[Empty](t, g)
	own, err := os.ReadFile("/proc/" + strconv.Itoa(g.PID()) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(own), group) || strings.Contains(string(own), filepath.Base(group)) {
		t.Errorf("the guard is inside: %s", own)
	}
	pipes, terminal := run(t, g, ExecSpec{}, script), run(t, g, ExecSpec{Terminal: &Size{}}, script)
	for name, got := range map[string]string{
		"app": readFile(t, g.options.LogDir, "stdout.log"), "pipes": text(t, pipes.Stdout), "terminal": text(t, terminal.Stdout),
	} {
		if !strings.Contains(got, "/"+filepath.Base(group)) || !strings.HasSuffix(strings.TrimSpace(got), "\n4") {
			t.Errorf("%s: %q", name, got)
		}
	}
	ended(t, pipes)
	ended(t, terminal)
	// One that may not enter does not run outside.
	closed, err := os.Open(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	g.around = entered{file: closed}
	if _, err := g.Start(Spec{Argv: []string{"true"}}); err == nil || err.Error() != "start true: join cgroup: bad file descriptor" {
		t.Errorf("start: %v", err)
	}
}

// facts are where a process is and what it is held to.
const facts = `cd /proc/self; for n in mnt pid ipc uts user cgroup; do readlink ns/$n; done; cat cgroup oom_score_adj; hostname; id
	grep -E '^(Cap|NoNewPrivs|Seccomp:)' status; umask; echo end`

func TestContainerExecIsInside(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	start(t, g, Spec{Argv: []string{"/bin/sh", "-c", facts + "; exec sleep 1000"}, Dir: "/"})
	waitForLine(t, filepath.Join(g.options.LogDir, "stdout.log"), "end")
	want := readFile(t, g.options.LogDir, "stdout.log")
	for name, terminal := range map[string]*Size{"pipes": nil, "terminal": {Rows: 24, Columns: 80}} {
		s := run(t, g, ExecSpec{Terminal: terminal}, facts)
		if got := strings.ReplaceAll(text(t, s.Stdout), "\r\n", "\n"); got != want {
			t.Errorf("%s: the program is\n%s\nthe app is\n%s", name, got, want)
		}
		ended(t, s)
		if err := s.Close(); err != nil { // so that its terminal is gone
			t.Error(err)
		}
	}
	s := run(t, g, ExecSpec{Terminal: &Size{Rows: 24, Columns: 80}}, `stty size; : >$(tty) && echo mine; ls /dev/pts`)
	// The kernel may take a moment to give the last terminal's number back.
	if got, want := text(t, s.Stdout), regexp.MustCompile(`^24 80\r\nmine\r\n[01]  ptmx\r\n$`); !want.MatchString(got) {
		t.Errorf("terminal says %q, want %s", got, want)
	}
	ended(t, s)
}

// Root in a container may put anything in the place of what the guard opens for a terminal; the guard waits for
// nothing and uses only a real one.
func TestContainerWithAFalsePtmx(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	for _, trick := range []string{"mkfifo /dev/ptmx", ": >/dev/ptmx", "ln -s null /dev/ptmx", "mkdir /dev/ptmx", "ln -s /proc/self/fd/4 /dev/ptmx"} {
		s := run(t, g, ExecSpec{}, "rm -rf /dev/ptmx; "+trick)
		if x := ended(t, s); deref(x.Code) != 0 {
			t.Fatalf("%s: %+v %s", trick, x, text(t, s.Stderr))
		}
		_, err := g.Exec(t.Context(), ExecSpec{Argv: []string{"/bin/true"}, Dir: "/", Terminal: &Size{}})
		if e, ok := errors.AsType[*StartError](err); !ok || e.Act != "open terminal" {
			t.Errorf("%s: %v", trick, err)
		}
	}
	ended(t, run(t, g, ExecSpec{}, "true"))
}

// What ends the app has its say to the end, and what the app leaves lives as long; a kill waits for nobody.
func TestExecOutlastsTheAppWhenAwaited(t *testing.T) {
	everywhere(t, func(t *testing.T, g *Guard) {
		for attempt, c := range []struct {
			name    string
			then    func(t *testing.T, s *Session)
			code    any
			signal  int
			awaited bool
		}{
			{"heard out", func(t *testing.T, s *Session) {
				if _, err := s.Stdin.Write([]byte("go on\n")); err != nil {
					t.Fatal(err)
				}
			}, 7, 0, true},
			{"killed", func(t *testing.T, _ *Session) {
				if err := g.Kill(); err != nil {
					t.Fatal(err)
				}
			}, nil, int(syscall.SIGKILL), true},
			{"not awaited", func(*testing.T, *Session) {}, nil, int(syscall.SIGKILL), false},
		} {
			start(t, g, Spec{Attempt: attempt + 1, Argv: []string{"sh", "-c", "sleep 1000 & exec sleep 1000"}, Dir: "/"})
			s := run(t, g, ExecSpec{Awaited: c.awaited}, "read x; exit 7")
			if err := g.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if x := await[Exited](t, g); x.Exit.Signal != int(syscall.SIGTERM) {
				t.Errorf("%s: %+v", c.name, x.Exit)
			}
			c.then(t, s)
			if x := ended(t, s); deref(x.Code) != c.code || x.Signal != c.signal {
				t.Errorf("%s: got %+v, want code %d, signal %d", c.name, x, c.code, c.signal)
			}
			await[Empty](t, g)
		}
	})
}
