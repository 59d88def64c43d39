package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the processes that are confined: the first argument says which.
func TestMain(m *testing.M) {
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
	"as-idle":   asIdle,
	"as-hog":    asHog,
	"as-spin":   asSpin,
	"as-forks":  asForks,
	"as-crowd":  asCrowd,
	"as-opener": asOpener,
	"as-leaf":   asLeaf,
}

// A role begins when a line comes in: by then the process is where it belongs.
func awaitOrder() error {
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

func asIdle([]string) error {
	fmt.Println("ready")
	return forever()
}

// forever waits in the kernel: a program all of whose goroutines wait for each other is ended by Go.
func forever() error {
	for {
		if _, err := unix.Ppoll(nil, nil, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// asHog touches args[0] MiB and says so; with another argument it stays.
func asHog(args []string) error {
	if err := awaitOrder(); err != nil {
		return err
	}
	mib, _ := strconv.Atoi(args[0])
	held := make([]byte, mib<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	fmt.Println("held", held[0])
	if len(args) > 1 {
		err := forever()
		runtime.KeepAlive(held)
		return err
	}
	return nil
}

// asSpin says that it begins, and uses all cores for args[0] ms.
func asSpin(args []string) error {
	if err := awaitOrder(); err != nil {
		return err
	}
	ms, _ := strconv.Atoi(args[0])
	fmt.Println("ready")
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	done := make(chan bool)
	for range 4 {
		go func() {
			for time.Now().Before(end) {
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	return nil
}

// asForks starts processes until it may not, and says how many it could and why no more.
func asForks(args []string) error {
	if err := awaitOrder(); err != nil {
		return err
	}
	most, _ := strconv.Atoi(args[0])
	for n := range most {
		if err := forkIdle(false); err != 0 {
			fmt.Println(n, err == syscall.EAGAIN)
			return nil
		}
	}
	fmt.Println(most, false)
	return nil
}

// forkIdle makes a process that waits for ever, at the price of a fork: in an emulated machine an exec takes a second.
// The child makes system calls and nothing else, so it does not miss the threads that it does not have.
func forkIdle(session bool) syscall.Errno {
	child, _, err := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if child == 0 && err == 0 {
		if session {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		}
		for {
			_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return err
}

// asCrowd makes args[0] processes, every second one in a session of its own, all deaf to TERM.
func asCrowd(args []string) error {
	if err := awaitOrder(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	n, _ := strconv.Atoi(args[0])
	for i := range n {
		if err := forkIdle(i%2 == 0); err != 0 {
			return err
		}
	}
	fmt.Println("ready")
	return forever()
}

// asOpener makes the node args[0] (c MAJOR MINOR) and says how opening it for args[3:] went.
func asOpener(args []string) error {
	if err := awaitOrder(); err != nil {
		return err
	}
	major, _ := strconv.Atoi(args[1])
	minor, _ := strconv.Atoi(args[2])
	if err := unix.Mknod(args[0], unix.S_IFCHR|0o600, int(unix.Mkdev(uint32(major), uint32(minor)))); err != nil {
		return fmt.Errorf("mknod: %w", err)
	}
	flags := map[string]int{"r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR}
	var words []string
	for _, how := range args[3:] {
		f, err := os.OpenFile(args[0], flags[how], 0)
		switch {
		case err == nil:
			words = append(words, how+":opened")
			_ = f.Close()
		case errors.Is(err, syscall.EPERM):
			words = append(words, how+":EPERM")
		default:
			words = append(words, how+":"+err.Error())
		}
	}
	fmt.Println(strings.Join(words, " "))
	return nil
}

// asLeaf moves to the leaf as an agent does, and says where it is.
func asLeaf([]string) error {
	if err := awaitOrder(); err != nil {
		return err
	}
	tree, err := Discover(Host{})
	if err == nil {
		err = tree.moveToLeaf(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return nil
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	fmt.Println(strings.TrimSpace(string(own)))
	return nil
}

// watchdog ends a test that has gone wrong: after 30 s, in an emulated machine, where each instruction takes its time, after 2 min.
var watchdog = func() time.Duration {
	if os.Getenv("MUSTER_MACHINE") != "" {
		return 2 * time.Minute
	}
	return 30 * time.Second
}()

// process is a role that runs.
type process struct {
	*exec.Cmd
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// run starts a role, which waits for go, in the cgroup g.
func run(t *testing.T, g *Group, role string, args ...string) *process {
	t.Helper()
	p := start(t, g, role, args...)
	p.order()
	return p
}

// start starts a role, which waits for its order.
func start(t *testing.T, g *Group, role string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(exe, append([]string{role}, args...)...), t: t}
	p.Stderr = t.Output()
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if dir := g.Folder(); dir != nil {
		p.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Process.Kill(), p.Wait() })
	if p.SysProcAttr == nil {
		if err := g.Add(p.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// order lets the role begin.
func (p *process) order() {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		p.t.Fatal(err)
	}
}

// line is the next that the role says; "" when it has ended.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// end waits for the role's end.
func (p *process) end() syscall.WaitStatus {
	p.t.Helper()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.Wait() // how it ended is what the caller asks
	return p.ProcessState.Sys().(syscall.WaitStatus)
}
