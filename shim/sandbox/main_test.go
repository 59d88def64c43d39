package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/tests/need"
)

// The test binary is also the app and the agent of its own tests: the first argument says which.
func TestMain(m *testing.M) {
	Init()
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(99)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var roles = map[string]func([]string) error{
	"as-agent":           asAgent,
	"as-tracer":          asTracer,
	"as-container-agent": asContainerAgent,
	"as-counter":         asCounter,
	"as-zombies":         asZombies,
	"as-rebel":           asRebel,
	"as-env":             asEnv,
	"as-writer":          asWriter,
	"as-state":           asState,
	"as-prier":           asPrier,
	"as-typist":          asTypist,
}

// asAgent parks a guard, runs the rest of its arguments under it in folder args[0], says the guard's pid and
// waits to be killed.
func asAgent(args []string) error {
	g, err := Process{}.StartGuard(context.Background(), Options{LogDir: args[0]})
	if err != nil {
		return err
	}
	pid, err := g.Start(Spec{Attempt: 1, Argv: args[1:], Env: os.Environ(), Dir: args[0]})
	if err != nil {
		return err
	}
	fmt.Println(g.PID(), pid)
	for range g.Events() {
	}
	return nil
}

// asCounter writes numbered lines as fast as it can, and after each one notes in the file args[0] that it is written.
func asCounter(args []string) error {
	f, err := os.OpenFile(args[0], os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(8); err != nil {
		return err
	}
	done, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for n := uint64(1); ; n++ {
		if _, err := fmt.Fprintf(os.Stdout, "%d\n", n); err != nil {
			return err
		}
		binary.NativeEndian.PutUint64(done, n)
	}
}

// asZombies makes args[0] grandchildren that end as orphans, then exits with 3.
func asZombies(args []string) error {
	n, _ := strconv.Atoi(args[0])
	for range n {
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "true & exit 0"}, &os.ProcAttr{})
		if err != nil {
			return err
		}
		if _, err := p.Wait(); err != nil {
			return err
		}
	}
	os.Exit(3)
	return nil
}

// asRebel makes a chain of processes in sessions of their own, each deaf to TERM and holding the fifo args[0] open,
// and says so on it when the last is there.
func asRebel(args []string) error {
	depth, _ := strconv.Atoi(args[1])
	fifo, err := os.OpenFile(args[0], os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if depth == 0 {
		fmt.Fprintln(fifo, "ready")
	} else {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		argv := []string{self, "as-rebel", args[0], strconv.Itoa(depth - 1)}
		if _, err := os.StartProcess(self, argv, &os.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true}}); err != nil {
			return err
		}
		if depth%2 == 0 { // an orphan below us, too
			return nil
		}
	}
	select {}
}

func asEnv(args []string) error {
	total := 0
	for _, e := range os.Environ() {
		total += len(e) + 1
	}
	fmt.Println(total, len(os.Getenv(args[0])))
	return nil
}

// asWriter writes args[0] bytes to stdout and args[1] to stderr.
func asWriter(args []string) error {
	for i, f := range []*os.File{os.Stdout, os.Stderr} {
		n, _ := strconv.Atoi(args[i])
		if err := writePattern(f, n); err != nil {
			return err
		}
	}
	return nil
}

// asState prints what a process must not inherit from its agent.
func asState([]string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigBlk") || strings.HasPrefix(line, "SigIgn") {
			fmt.Print(line)
		}
	}
	adj, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	var nofile unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &nofile); err != nil {
		return err
	}
	s, err := proc.Host{}.Stat(os.Getpid())
	if err != nil {
		return err
	}
	fmt.Printf("adj %score %d\nsession %v group %v\n", adj, nofile.Max, s.Session == s.PID, s.Group == s.PID)
	return nil
}

func writePattern(f *os.File, n int) error {
	block := make([]byte, 64<<10)
	for at := 0; at < n; at += len(block) {
		for i := 0; i < len(block); i += 8 {
			binary.LittleEndian.PutUint64(block[i:], uint64(at+i))
		}
		if _, err := f.Write(block[:min(len(block), n-at)]); err != nil {
			return err
		}
	}
	return nil
}

// watchdog ends a test that has gone wrong: after 30 s, in an emulated machine, where each instruction takes its time, after 2 min.
var watchdog = func() time.Duration {
	if os.Getenv("MUSTER_MACHINE") != "" {
		return 2 * time.Minute
	}
	return 30 * time.Second
}()

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func processGuard(t *testing.T, o Options) *Guard {
	t.Helper()
	g := processGuardOpen(t, o)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

// processGuardOpen leaves the closing to the test.
func processGuardOpen(t *testing.T, o Options) *Guard {
	t.Helper()
	if o.LogDir == "" {
		o.LogDir = filepath.Join(t.TempDir(), "log")
	}
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	g, err := Process{}.StartGuard(ctx, o)
	if errors.Is(err, guard.ErrNotBuilt) {
		need.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// await returns the next event of type E; events of other types in between are passed to also.
func await[E Event](t *testing.T, g *Guard, also ...func(Event)) E {
	t.Helper()
	timeout := time.NewTimer(watchdog)
	defer timeout.Stop()
	for {
		select {
		case e, ok := <-g.Events():
			if !ok {
				t.Fatalf("events ended, want %T", *new(E))
			}
			if want, ok := e.(E); ok {
				return want
			}
			for _, f := range also {
				f(e)
			}
		case <-timeout.C:
			t.Fatalf("no %T within %s", *new(E), watchdog)
		}
	}
}

func start(t *testing.T, g *Guard, s Spec) int {
	t.Helper()
	if s.Env == nil {
		s.Env = os.Environ()
	}
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	pid, err := g.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// awaitEnd waits for the end of a process that is nobody's child here.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, int(watchdog.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			t.Fatalf("process %d is still there after %s (%v)", pid, watchdog, err)
		}
		return
	}
}
