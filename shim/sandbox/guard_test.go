package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

func TestExitIsWhole(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		name, script string
		code         *int
		signal       int
		message      string
	}{
		{"zero", "exit 0", code(0), 0, "exit code 0"},
		{"own code", "exit 255", code(255), 0, "exit code 255"},
		{"137 is a code", "exit 137", code(137), 0, "exit code 137"},
		{"killed", "kill -KILL $$", nil, 9, "ended by SIGKILL"},
		{"term", "kill -TERM $$", nil, 15, "ended by SIGTERM"},
		{"real-time signal", "kill -40 $$", nil, 40, "ended by signal 40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := processGuard(t, Options{})
			before := time.Now()
			pid := start(t, g, Spec{Attempt: 3, Argv: []string{"sh", "-c", c.script}})
			started := await[Started](t, g)
			if started.PID != pid || started.Attempt != 3 || started.Ticks == 0 {
				t.Errorf("started %+v, want pid %d, attempt 3, ticks", started, pid)
			}
			x := await[Exited](t, g)
			if x.Attempt != 3 || fmt.Sprint(deref(x.Exit.Code)) != fmt.Sprint(deref(c.code)) || x.Exit.Signal != c.signal || x.Exit.Message != c.message {
				t.Errorf("exited %+v (code %v), want code %v, signal %d, %q", x, deref(x.Exit.Code), deref(c.code), c.signal, c.message)
			}
			if x.Exit.At.Before(before) || x.Exit.At.After(time.Now()) || x.Exit.MaxRSS < 4096 {
				t.Errorf("exit at %v with %d bytes", x.Exit.At, x.Exit.MaxRSS)
			}
			if e := await[Empty](t, g); e.Attempt != 3 || !e.LogsComplete {
				t.Errorf("empty %+v, want attempt 3, logs complete", e)
			}
		})
	}
}

func deref(p *int) any {
	if p == nil {
		return nil
	}
	return *p
}

func TestStartSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("plain", "echo\n", 0o644)
	lost := write("lost", "#!/no/such/interpreter\n", 0o755)
	junk := write("junk", "\x01\x02\x03 not a program", 0o755)
	g := processGuard(t, Options{})
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	hard := fmt.Sprint(own.Max)
	for _, c := range []struct {
		name string
		spec Spec
		want string
		is   error
	}{
		{"absolute", Spec{Argv: []string{"/no/such/program"}}, "start program: exec /no/such/program: no such file or directory", fs.ErrNotExist},
		{"PATH", Spec{Argv: []string{"nosuchprogram"}, Env: []string{"PATH=/bin:/usr/bin"}}, "start nosuchprogram: exec nosuchprogram: no such file or directory (looked for in PATH: install it on the host, or in the image that muster.image names)", fs.ErrNotExist},
		{"not executable", Spec{Argv: []string{plain}}, "start plain: exec " + plain + ": permission denied (" + plain + " has mode 0644, by which the process, uid " + fmt.Sprint(os.Geteuid()) + " on this host, may not execute it)", fs.ErrPermission},
		{"interpreter", Spec{Argv: []string{lost}}, "start lost: exec " + lost + ": no such file or directory (the file is there: the interpreter or loader that it names is not)", fs.ErrNotExist},
		{"format", Spec{Argv: []string{junk}}, "start junk: exec " + junk + ": exec format error (no program of this machine and no #! line)", syscall.ENOEXEC},
		{"folder", Spec{Argv: []string{"true"}, Dir: "/no/such/folder"}, "start true: chdir /no/such/folder: no such file or directory", fs.ErrNotExist},
		{"too long", Spec{Argv: []string{"true"}, Env: []string{"X=" + strings.Repeat("x", 1<<18)}}, "start true: exec true: argument list too long (arguments and environment are too long; one string holds at most 131071 bytes)", syscall.E2BIG},
		{"limit", Spec{Argv: []string{"true"}, Rlimits: map[string]Rlimit{"nofile": {1, Unlimited}}}, "start true: set limit nofile: operation not permitted (muster.ulimit.nofile asks for 1:unlimited, and the agent's hard limit on this host is " + hard + ": ask for no more, or let the operator raise that, as by limits.conf(5) or the unit's LimitNOFILE)", fs.ErrPermission},
		{"unknown limit", Spec{Argv: []string{"true"}, Rlimits: map[string]Rlimit{"files": {1, 1}}}, `start true: limit "files": want one of ` + fmt.Sprint(rlimitNames), nil},
		{"empty", Spec{}, "start: argv is empty", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := g.Start(c.spec)
			if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	// A refused start is no start: the guard takes the next one, and no event tells of the others.
	start(t, g, Spec{Attempt: 9, Argv: []string{"true"}})
	if x := await[Started](t, g, func(e Event) { t.Errorf("event of a start that did not happen: %+v", e) }); x.Attempt != 9 {
		t.Errorf("started %+v", x)
	}
	await[Empty](t, g)
}

func TestRestartInPlaceKillsWhatWasLeft(t *testing.T) {
	g := processGuard(t, Options{})
	for attempt := 1; attempt <= 20; attempt++ {
		start(t, g, Spec{Attempt: attempt, Argv: []string{"sh", "-c", "(trap '' TERM HUP; exec setsid sleep 1000) & echo run; exit 7"}})
		if x := await[Exited](t, g); deref(x.Exit.Code) != 7 || x.Attempt != attempt {
			t.Fatalf("exited %+v", x)
		}
		await[Empty](t, g)
		if left := below(t, g.PID()); len(left) > 0 {
			t.Fatalf("attempt %d left %+v", attempt, left)
		}
	}
	// All attempts in one file.
	if got := readFile(t, g.options.LogDir, "stdout.log"); got != strings.Repeat("run\n", 20) {
		t.Errorf("stdout.log = %q", got)
	}
}

// A process may have ended before the guard hears that its exec succeeded.
func TestShortestLivesAreTold(t *testing.T) {
	g := processGuard(t, Options{})
	for attempt := range 300 {
		pid := start(t, g, Spec{Attempt: attempt, Argv: []string{"/bin/true"}, Env: []string{}, Dir: "/"})
		if s := await[Started](t, g); s.PID != pid || pid == 0 || s.Ticks == 0 || s.Attempt != attempt {
			t.Fatalf("start %d: pid %d, started %+v", attempt, pid, s)
		}
		await[Exited](t, g)
		await[Empty](t, g)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	g := processGuard(t, Options{})
	start(t, g, Spec{Attempt: 1, Argv: []string{"sleep", "1000"}})
	if _, err := g.Start(Spec{Attempt: 2, Argv: []string{"true"}}); !errors.Is(err, errBusy) {
		t.Errorf("second start: %v, want ErrBusy", err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Attempt != 1 {
		t.Errorf("exited %+v, want attempt 1", x)
	}
	await[Empty](t, g)
}

func below(t *testing.T, pid int) []proc.Stat {
	t.Helper()
	all, err := (proc.Host{}).Processes()
	if err != nil {
		t.Fatal(err)
	}
	return proc.WithDescendants(all, func(s proc.Stat) bool { return s.PPID == pid })
}

func TestSignalReachesOnlyTheMainProcess(t *testing.T) {
	g := processGuard(t, Options{})
	// The child in the same group would say so if TERM reached it; it is asked to end by the main process.
	start(t, g, Spec{Argv: []string{"sh", "-c", `
		sh -c 'trap "echo child got TERM" TERM; echo ready; read x <&3; echo child ends' 3<fifo &
		trap 'echo main got TERM; exec 4>fifo; echo end >&4; wait; exit 5' TERM
		while :; do wait; done`}, Dir: fifoDir(t)})
	waitForLine(t, filepath.Join(g.options.LogDir, "stdout.log"), "ready")
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); deref(x.Exit.Code) != 5 {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g)
	if got, want := readFile(t, g.options.LogDir, "stdout.log"), "ready\nmain got TERM\nchild ends\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if err := g.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal after the end: %v", err)
	}
}

func fifoDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Held for reading and writing, so that neither end of the script waits for the other.
	f, err := os.OpenFile(filepath.Join(dir, "fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return dir
}

func TestKillReachesEverySession(t *testing.T) {
	g := processGuard(t, Options{})
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	start(t, g, Spec{Attempt: 2, Argv: []string{self(t), "as-rebel", fifo, "7"}})
	held.wantReady(t)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Exit.Signal != 9 {
		t.Errorf("exited %+v, want signal 9", x)
	}
	if e := await[Empty](t, g); e.Attempt != 2 {
		t.Errorf("empty %+v", e)
	}
	if left := below(t, g.PID()); len(left) > 0 {
		t.Errorf("left %+v", left)
	}
	held.wantEnd(t)
}

func TestKillOfNothingIsEmpty(t *testing.T) {
	g := processGuard(t, Options{})
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	await[Empty](t, g)
	start(t, g, Spec{Argv: []string{"true"}})
	await[Exited](t, g)
	await[Empty](t, g)
}

func TestForkBombDies(t *testing.T) {
	g := processGuard(t, Options{})
	// Each process keeps making two more in new sessions; the limit only keeps the test's machine alive.
	script := `b() { setsid sh -c "$S" & setsid sh -c "$S" & wait; }; while :; do b; done`
	start(t, g, Spec{
		Argv: []string{"sh", "-c", script + " 2>/dev/null"}, Env: append(os.Environ(), "S="+script),
		User: nobody(t), Rlimits: map[string]Rlimit{"nproc": {300, 300}}, Dir: "/",
	})
	// Their parents come and go faster than the tree can be read: as root they are told by their user.
	bomb := func() int { return len(below(t, g.PID())) }
	if u := nobody(t); u != nil {
		bomb = func() int { return processesOf(t, u.UID) }
	}
	for end := time.Now().Add(watchdog); bomb() < 50; {
		if time.Now().After(end) {
			t.Fatalf("the bomb does not grow: %d processes", bomb())
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	await[Empty](t, g, func(e Event) {
		if s, ok := e.(Stuck); ok {
			t.Errorf("stuck %s", s)
		}
	})
	if left := below(t, g.PID()); len(left) > 0 {
		t.Errorf("left %d processes", len(left))
	}
}

// processesOf counts the processes of a user.
func processesOf(t *testing.T, uid uint32) (n int) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		info, err := os.Stat(folder) // of one that has just ended there is none
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == uid {
			n++
		}
	}
	return n
}

func TestZombieFloodIsReaped(t *testing.T) {
	g := processGuard(t, Options{})
	start(t, g, Spec{Argv: []string{self(t), "as-zombies", "1000"}})
	if x := await[Exited](t, g); deref(x.Exit.Code) != 3 {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g)
	if left := below(t, g.PID()); len(left) > 0 {
		t.Errorf("%d zombies", len(left))
	}
}

func TestStateOfTheProcess(t *testing.T) {
	g := processGuard(t, Options{})
	start(t, g, Spec{Argv: []string{self(t), "as-state"}, Rlimits: map[string]Rlimit{"core": {0, 0}}, OOMScoreAdj: 7})
	await[Empty](t, g)
	// The Go runtime of the app ignores and blocks nothing by itself.
	want := "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nadj 7\ncore 0\nsession true group true\n"
	if got := readFile(t, g.options.LogDir, "stdout.log"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStdinIsNullAndNothingLeaks(t *testing.T) {
	// Ours, not close-on-exec: it must not reach the process either.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	g := processGuard(t, Options{})
	// ls has no descriptors but its own of the folder.
	start(t, g, Spec{Argv: []string{"sh", "-c", "cat; exec ls -l /proc/self/fd"}})
	await[Empty](t, g)
	var fds []string
	for line := range strings.Lines(readFile(t, g.options.LogDir, "stdout.log")) {
		if _, link, ok := strings.Cut(line, " -> "); ok {
			fds = append(fds, strings.TrimRight(strings.TrimSpace(link), "0123456789[]:"))
		}
	}
	if got, want := strings.Join(fds, " "), "/dev/null pipe pipe /proc/"; !strings.HasPrefix(got, want) || len(fds) != 4 {
		t.Errorf("descriptors %q, want %q and no more", fds, want)
	}
}

func TestLargeEnvironment(t *testing.T) {
	g := processGuard(t, Options{})
	var env []string
	total := 0
	for i := range 12 {
		env = append(env, fmt.Sprintf("BIG%02d=%s", i, strings.Repeat("x", 120_000)))
		total += len(env[i]) + 1
	}
	start(t, g, Spec{Argv: []string{self(t), "as-env", "BIG03"}, Env: env})
	await[Empty](t, g)
	if got, want := readFile(t, g.options.LogDir, "stdout.log"), fmt.Sprintln(total, 120_000); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func boottime(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

func TestDeadManTimer(t *testing.T) {
	g := processGuard(t, Options{})
	start(t, g, Spec{Attempt: 4, Argv: []string{"sleep", "1000"}})
	looked := boottime(t)
	if err := g.Feed(looked + time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := g.Feed(looked - time.Second); err != nil { // as of an agent that stood still after its look
		t.Fatal(err)
	}
	if e := await[DeadMan](t, g); e.Attempt != 4 {
		t.Errorf("dead man %+v", e)
	}
	if x := await[Exited](t, g); x.Exit.Signal != 9 {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g)
	if e := await[Gone](t, g); !errors.Is(e.Err, errDeadMan) || len(e.Left) > 0 {
		t.Errorf("gone %+v, want dead-man timer", e)
	}
	if _, err := g.Start(Spec{Argv: []string{"true"}}); !errors.Is(err, ErrGone) {
		t.Errorf("start after the end: %v", err)
	}
}

// TestDeadManTimerHearsALaterFeed: a guard that was stopped past the moment it was fed reads what was fed since before it
// ends anything.
func TestDeadManTimerHearsALaterFeed(t *testing.T) {
	for name, later := range map[string]time.Duration{"a later moment": time.Hour, "disarmed": 0} {
		t.Run(name, func(t *testing.T) {
			g := processGuard(t, Options{})
			moment := boottime(t) + 2*time.Second // far enough for the start
			if err := g.Feed(moment); err != nil {
				t.Fatal(err)
			}
			start(t, g, Spec{Attempt: 4, Argv: []string{"sleep", "1000"}}) // the guard has read the feed
			if err := syscall.Kill(g.PID(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			for boottime(t) <= moment {
				time.Sleep(10 * time.Millisecond)
			}
			if later > 0 {
				later += boottime(t)
			}
			if err := g.Feed(later); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(g.PID(), syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			await[Empty](t, g, func(e Event) {
				if _, dead := e.(DeadMan); dead {
					t.Error("the dead-man timer has ended it")
				}
			})
		})
	}
}

func TestCloseProvesTheEnd(t *testing.T) {
	g := processGuard(t, Options{})
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	start(t, g, Spec{Argv: []string{self(t), "as-rebel", fifo, "3"}})
	held.wantReady(t)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	held.wantEnd(t)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", g.PID())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("guard %d: %v", g.PID(), err)
	}
	// What happened until then can still be read, and the channel ends.
	var last Event
	for e := range g.Events() {
		last = e
	}
	if _, ok := last.(Empty); !ok {
		t.Errorf("last event %T, want Empty", last)
	}
}

func TestGuardKilledLeavesNothing(t *testing.T) {
	g := processGuard(t, Options{})
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	// A helper of the agent, in its own session: not touched.
	helper, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	start(t, g, Spec{Attempt: 5, Argv: []string{self(t), "as-rebel", fifo, "5"}})
	held.wantReady(t)
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Attempt != 5 || x.Exit.Signal != 9 {
		t.Errorf("exited %+v, want attempt 5, signal 9", x)
	}
	await[Empty](t, g)
	if e := await[Gone](t, g); !errors.Is(e.Err, ErrGone) || len(e.Left) > 0 {
		t.Errorf("gone %+v", e)
	}
	held.wantEnd(t)
	if err := helper.Kill(); err != nil {
		t.Errorf("the agent's own helper is gone: %v", err)
	}
	if _, err := helper.Wait(); err != nil {
		t.Error(err)
	}
}

// A process with a guard's name, in a session of its own, is no guard.
func TestNameOfAGuardSavesNobody(t *testing.T) {
	g := processGuard(t, Options{})
	mimic := filepath.Join(t.TempDir(), "muster-guard")
	if err := os.Symlink("/bin/sleep", mimic); err != nil {
		t.Fatal(err)
	}
	start(t, g, Spec{Argv: []string{"sh", "-c", "setsid " + mimic + " 1000 & wait"}}) // the first process dies with its guard
	var found proc.Stat
	for end := time.Now().Add(watchdog); found.Name != "muster-guard" || found.Session != found.PID; {
		if time.Now().After(end) {
			t.Fatalf("it is %+v", found)
		}
		for _, s := range below(t, g.PID()) {
			if s.Name == "muster-guard" {
				found = s
			}
		}
	}
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := await[Gone](t, g); len(e.Left) > 0 {
		t.Errorf("gone %+v", e)
	}
	if s, err := (proc.Host{}).Stat(found.PID); err == nil && s.Start == found.Start {
		t.Errorf("%+v lives on", s)
	}
}

// A path of the job must not lead through a descriptor of the guard: its log folder, its program, its socket.
func TestNoPathLeadsThroughTheGuard(t *testing.T) {
	g := processGuard(t, Options{})
	for fd := 3; fd < 40; fd++ {
		_, err := g.Start(Spec{Argv: []string{"true"}, Dir: fmt.Sprintf("/proc/self/fd/%d/.", fd)})
		// 3 is the pipe that this very error comes through.
		if want := fs.ErrNotExist; !errors.Is(err, want) && (fd != 3 || !errors.Is(err, syscall.ENOTDIR)) {
			t.Errorf("descriptor %d: %v, want %v", fd, err, want)
		}
	}
}

// A signal that was meant for an earlier process, and comes late, is for nobody.
func TestLateSignalIsForNobody(t *testing.T) {
	g := processGuard(t, Options{})
	start(t, g, Spec{Attempt: 2, Argv: []string{"sleep", "1000"}})
	if err := g.link.send(guard.Message{Kind: guard.Signal, Start: 1, A: int64(syscall.SIGKILL)}); err != nil {
		t.Fatal(err)
	}
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Exit.Signal != int(syscall.SIGTERM) {
		t.Errorf("exited %+v, want by the signal of its own", x)
	}
}

// A kill that was meant for an earlier process, and comes late, is for nobody.
func TestLateKillIsForNobody(t *testing.T) {
	g := processGuard(t, Options{})
	start(t, g, Spec{Attempt: 2, Argv: []string{"sleep", "1000"}})
	if err := g.link.send(guard.Message{Kind: guard.Kill, Start: 1}); err != nil {
		t.Fatal(err)
	}
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Exit.Signal != int(syscall.SIGTERM) {
		t.Errorf("exited %+v, want by the signal of its own", x)
	}
}

// slowKill is a boundary whose kill goes on for as long as the test wants, when the process has ended.
type slowKill struct {
	noBoundary
	g    *Guard
	over chan struct{}
}

func (s slowKill) kill() error {
	err := s.g.Signal(syscall.SIGKILL)
	<-s.over
	return err
}

// The next start waits for a kill that is still at work, which would meet its process.
func TestStartWaitsForAKill(t *testing.T) {
	g := processGuard(t, Options{})
	around := slowKill{g: g, over: make(chan struct{})}
	g.around = around
	start(t, g, Spec{Attempt: 1, Argv: []string{"sleep", "1000"}})
	killed, started := make(chan error, 1), make(chan error, 1)
	go func() { killed <- g.Kill() }()
	await[Empty](t, g)
	go func() {
		_, err := g.Start(Spec{Attempt: 2, Argv: []string{"sleep", "1000"}, Dir: "/", Env: os.Environ()})
		started <- err
	}()
	select {
	case err := <-started:
		t.Fatalf("started while what was there before was being killed: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(around.over)
	if err := errors.Join(<-killed, <-started); err != nil {
		t.Fatal(err)
	}
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Attempt != 2 || x.Exit.Signal != int(syscall.SIGTERM) {
		t.Errorf("exited %+v, want the second by the signal of its own", x)
	}
}
