// Package jail keeps what a server starts together. A resource manager's containers outlive it on purpose, in sessions
// and process groups of their own; in a jail (namespaces of pids and of mounts) all of them end with the test, even
// with one that is killed, and so do their mounts. A jail may also be a host: everything on it dies at once.
//
// Networks, users, control groups and files are the machine's. Needs root.
package jail

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

//go:embed init
var initScript string

// watchdog bounds every wait of this package.
const watchdog = 30 * time.Second

// Jail is one.
type Jail struct {
	t    testing.TB
	init *Process
}

// Process is a program in a jail.
type Process struct {
	*child.Process // its PID is as this test sees it, not as the jail does

	name string
	log  string
}

// New makes a jail, which lives as long as the test.
func New(t testing.TB) *Jail {
	t.Helper()
	need.Root(t)
	ready, made, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	cmd := exec.Command("/bin/bash", "-c", initScript, "init", "/bin/sh", "-c",
		"echo >&3; exec 3>&-; exec sleep infinity")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{made}
	// the parent-death signal belongs to the thread that forks (prctl(2)); start keeps it
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	p, err := start(cmd)
	made.Close()
	if err != nil {
		need.Skip(t, fmt.Sprintf("no namespaces here: %v", err))
	}
	j := &Jail{t: t, init: p}
	t.Cleanup(j.Kill)
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatalf("a jail ended at its start: %v", err)
	}
	return j
}

// PID is the jail's first process.
func (j *Jail) PID() int { return j.init.PID }

// Kill kills everything in the jail and returns when nothing is left.
func (j *Jail) Kill() { j.init.Kill() }

// Start starts a program in the jail; what it writes is appended to the file log.
func (j *Jail) Start(cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	p, err := start(cmd, j.enter)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.log = log
	return p, nil
}

// Output runs a program in the jail to its end and returns what it wrote to stdout; what it wrote to stderr is in the
// error.
func (j *Jail) Output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	p, err := start(cmd, j.enter)
	if err != nil {
		return "", fmt.Errorf("%q: %w", cmd.Args, err)
	}
	select {
	case <-p.Gone:
	case <-time.After(2 * watchdog):
		p.Kill()
		return stdout.String(), fmt.Errorf("%q: no end within %s\n%s", cmd.Args, 2*watchdog, stderr.Bytes())
	}
	if !cmd.ProcessState.Success() {
		return stdout.String(), fmt.Errorf("%q: %s\n%s%s", cmd.Args, cmd.ProcessState, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}

// Processes are the pids of all processes in the jail but its own, as this test sees them, those in namespaces of pids
// inside of it among them.
func (j *Jail) Processes() []int {
	own, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", j.init.PID))
	if err != nil {
		return nil // it is gone with all that was in it
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, folder := range all {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && pid != j.init.PID && within(folder+"/ns/pid", own) && !isHolder(folder) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isHolder tells whether a process is what the jail itself waits for to end.
func isHolder(folder string) bool {
	line, err := os.ReadFile(folder + "/cmdline")
	return err == nil && string(line) == "sleep\x00infinity\x00"
}

// within tells whether a namespace of pids is the outer one or lies in it.
func within(path string, outer os.FileInfo) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // its process is gone
	}
	for {
		inside, err := f.Stat()
		if err == nil && os.SameFile(inside, outer) {
			f.Close()
			return true
		}
		parent, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_PARENT) // ioctl_nsfs(2)
		f.Close()
		if err != nil {
			return false // that of this test has no parent that it may see
		}
		f = os.NewFile(uintptr(parent), path)
	}
}

// enter puts the thread's next child into the jail, and the thread itself among its mounts.
func (j *Jail) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // setns(2): mounts go by what threads share
		return err
	}
	for _, ns := range []struct {
		name string
		kind int
	}{{"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS}} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", j.init.PID, ns.name))
		if err != nil {
			return err
		}
		err = unix.Setns(int(f.Fd()), ns.kind)
		f.Close()
		if err != nil {
			return fmt.Errorf("enter a jail's %s: %w", ns.name, err)
		}
	}
	return nil
}

// start starts a process on a thread of its own, which lives as long as the process.
func start(cmd *exec.Cmd, before ...func() error) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{} // no parent-death signal: inside a jail of pids no parent is seen
	}
	p, err := child.Start(cmd, before...)
	if err != nil {
		return nil, err
	}
	return &Process{Process: p, name: filepath.Base(cmd.Path)}, nil
}

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.Gone:
		return false
	default:
		return true
	}
}

// Kill ends the process by SIGKILL and waits until it is gone.
func (p *Process) Kill() { _ = p.End(syscall.SIGKILL) }

// End sends the signal and waits until the process is gone.
func (p *Process) End(sig syscall.Signal) error { return p.Process.End(sig, watchdog) }

// Await asks until there is no error, the process has ended or the limit is over.
func (p *Process) Await(limit time.Duration, ask func() error) error {
	dog := time.NewTimer(limit)
	defer dog.Stop()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.Gone:
			return fmt.Errorf("%s ended (%s); the end of its log:\n%s", p.name, p.State(),
				p.LogTail())
		case <-dog.C:
			return fmt.Errorf("after %s: %w; the end of %s:\n%s", limit, err, p.log, p.LogTail())
		case <-poll.C:
		}
	}
}

// LogTail is the end of what it wrote.
func (p *Process) LogTail() string {
	const most = 8 << 10
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.ToValidUTF8(string(b[max(0, len(b)-most):]), "?")
}

// ProcessesWith are those of Processes whose environment, as it was when their program started, has the entry
// NAME=VALUE.
func (j *Jail) ProcessesWith(entry string) []int {
	var pids []int
	for _, pid := range j.Processes() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, env...), append([]byte{0}, entry+"\x00"...)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
