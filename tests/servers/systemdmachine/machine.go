// Package systemdmachine starts a real systemd as PID 1 for tests, in namespaces of this machine: Debian's files, of
// which it has a copy of its own to write to, and control groups of version 2 without memory, cpu and pids. Network,
// users and kernel are the machine's. Enters a test; leaves a machine that takes unit files and tells what became of
// them, and is gone when the test ends, however it ends. The files come from `scripts/lab/systemd build`; without them,
// without root and with -short, the test is skipped (package need).
package systemdmachine

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/need"
)

// watchdog bounds every wait for a machine in namespaces. It only ever ends a test that has gone wrong.
const watchdog = 60 * time.Second

//go:embed init
var initScript string

// Options are a test's wishes; the zero value is a good machine.
type Options struct {
	// Binds are files and folders of this machine that it sees: its path by ours.
	Binds map[string]string
}

// Machine is one running systemd with all that it runs. Its methods end the test on errors.
type Machine struct {
	// PID is systemd's, as this test sees it.
	PID int
	// Dir/lab is /lab in the machine.
	Dir string

	t        testing.TB
	patience time.Duration // for each wait
	cmd      *exec.Cmd
	gone     <-chan struct{} // closed when systemd and all that it ran are gone
	cgroup   string
	conn     *dbus.Conn
	updates  chan *dbus.PropertiesUpdate
}

// Start starts a machine and returns when systemd has started all that it starts by itself.
func Start(t testing.TB, o Options) *Machine {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real systemd: not with -short")
	}
	need.Root(t)
	root, err := Root()
	if err != nil {
		need.Skip(t, err.Error())
	}
	unified, err := unifiedTop()
	if err != nil {
		need.Skip(t, err.Error())
	}
	sweep(unified)
	dir, err := os.MkdirTemp("", "sd-") //nolint:usetesting // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{
		Dir: dir, t: t, patience: watchdog, updates: make(chan *dbus.PropertiesUpdate, 1000),
		cgroup: filepath.Join(unified, fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), filepath.Base(dir))),
	}
	t.Cleanup(m.end)
	m.boot(root, o)
	m.connect()
	return m
}

// This is the machine that the test itself runs in, as its root: a slow one, which is thrown away. It has no Dir, and
// no PowerOff or Kill.
func This(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{
		PID: 1, t: t, patience: slowly * watchdog,
		updates: make(chan *dbus.PropertiesUpdate, 1000), cgroup: "/sys/fs/cgroup",
	}
	m.connect()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the journal:\n%s", m.journalTail())
		}
		m.conn.Close()
	})
	return m
}

// slowly is how much longer is waited in an emulated machine.
const slowly = 8

// Root is the folder of the machine's files. The error says what to do when it is not there.
func Root() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	pattern := filepath.Join(cache, "muster", "systemd-*", "usr", "lib", "systemd", "systemd")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("no systemd at %s (make it with scripts/lab/systemd build): %w", pattern, os.ErrNotExist)
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return made(a).Compare(made(b)) })
	return strings.TrimSuffix(newest, "/usr/lib/systemd/systemd"), nil
}

// made is when the folder of a systemd was laid out; its own files are as old as Debian made them.
func made(systemd string) time.Time {
	info, err := os.Stat(strings.TrimSuffix(systemd, "/usr/lib/systemd/systemd") + "/etc/fstab")
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (m *Machine) boot(root string, o Options) {
	m.t.Helper()
	for _, folder := range []string{"upper", "work", "root", "lab"} {
		if err := os.Mkdir(filepath.Join(m.Dir, folder), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	var binds strings.Builder
	for from, to := range o.Binds {
		fmt.Fprintln(&binds, from, to)
	}
	script := filepath.Join(m.Dir, "init")
	err := errors.Join(os.WriteFile(filepath.Join(m.Dir, "binds"), []byte(binds.String()), 0o644),
		os.WriteFile(script, []byte(initScript), 0o644))
	if err != nil {
		m.t.Fatal(err)
	}
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{
		Name: filepath.Join(m.Dir, "lab", ".notify"),
		Net:  "unixgram",
	})
	if err != nil {
		m.t.Fatal(err)
	}
	defer notify.Close()
	m.run("/bin/bash", script, root, m.Dir, filepath.Base(m.cgroup))
	go func() {
		<-m.gone // nobody else would end the wait
		notify.Close()
	}()
	if err := notify.SetReadDeadline(time.Now().Add(watchdog)); err != nil {
		m.t.Fatal(err)
	}
	for text := make([]byte, 4096); ; {
		n, err := notify.Read(text)
		if err != nil {
			m.t.Fatalf("systemd did not start: %v\n%s", err, m.said())
		}
		if bytes.Contains(text[:n], []byte("READY=1")) {
			return
		}
	}
}

// run starts PID 1, which dies with this process. The parent-death signal belongs to the thread that forks (prctl(2)),
// so one goroutine keeps its thread until PID 1 has ended.
func (m *Machine) run(args ...string) {
	m.t.Helper()
	log, err := os.Create(filepath.Join(m.Dir, "log"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(args[0], args[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true, Pdeathsig: syscall.SIGKILL,
	}
	p, err := child.Start(m.cmd)
	if err != nil {
		need.Skip(m.t, fmt.Sprintf("no namespaces here: %v", err))
	}
	m.PID, m.gone = p.PID, p.Gone // when all in its namespace are gone (pid_namespaces(7))
}

func (m *Machine) said() string {
	text, err := os.ReadFile(filepath.Join(m.Dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// PowerOff shuts the machine down as a person does, all units stopped in order, and waits until it is gone.
func (m *Machine) PowerOff() {
	m.t.Helper()
	if err := syscall.Kill(m.PID, syscall.Signal(34+4)); err != nil { // SIGRTMIN+4, systemd(1)
		m.t.Fatal(err)
	}
	select {
	case <-m.gone:
	case <-time.After(2 * watchdog):
		m.t.Fatalf("the machine is not down after %s", 2*watchdog)
	}
}

// Kill takes the machine's power away.
func (m *Machine) Kill() {
	_ = syscall.Kill(m.PID, syscall.SIGKILL) // gone already is as good
	<-m.gone
}

// Running tells whether it is up.
func (m *Machine) Running() bool {
	select {
	case <-m.gone:
		return false
	default:
		return true
	}
}

// end is the clean-up.
func (m *Machine) end() {
	if m.cmd != nil && m.cmd.Process != nil {
		if m.t.Failed() && m.Running() {
			m.t.Logf("the end of the journal:\n%s", m.journalTail())
		}
		m.Kill()
	}
	if m.conn != nil {
		m.conn.Close()
	}
	removeCgroups(m.cgroup)
	if err := os.RemoveAll(m.Dir); err != nil {
		m.t.Errorf("what systemd left: %v", err)
	}
}

func (m *Machine) journalTail() string {
	ctx, cancel := context.WithTimeout(context.Background(), m.patience)
	defer cancel()
	out, _ := m.command(ctx, "journalctl", "--no-pager", "-n", "60").CombinedOutput() // what it can say is said
	return string(out)
}

// prefix begins the names of our control groups; the pid of the test process follows.
const prefix = "muster-test-systemd-"

// unifiedTop is where this machine's cgroup2 is mounted.
func unifiedTop() (string, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("no cgroup2 is mounted here")
}

// sweep removes the control groups of test processes that were killed before they could.
func sweep(unified string) {
	left, _ := filepath.Glob(filepath.Join(unified, prefix+"*")) // only a bad pattern is an error
	for _, folder := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), prefix), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			removeCgroups(folder)
		}
	}
}

func removeCgroups(top string) {
	var folders []string
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) { // the innermost first
		_ = os.Remove(folder)
	}
}
