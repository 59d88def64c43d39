package systemdmachine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/muster-agent/muster/tests/leash"
)

// connect joins the machine's bus, by which systemd tells of changes. Its own socket is not for who is outside of its
// namespace of pids.
func (m *Machine) connect() {
	m.t.Helper()
	address := fmt.Sprintf("unix:path=/proc/%d/root/run/dbus/system_bus_socket", m.PID)
	conn, err := dbus.NewConnection(func() (*godbus.Conn, error) {
		c, err := godbus.Dial(address)
		if err != nil {
			return nil, err
		}
		return c, errors.Join(c.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Getuid()))}), c.Hello())
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.conn = conn
	conn.SetPropertiesSubscriber(m.updates, make(chan error, 1000))
	if err := conn.Subscribe(); err != nil {
		m.t.Fatal(err)
	}
}

// Path is where a file of the machine lies for this test.
func (m *Machine) Path(inside string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.PID), inside)
}

// Write writes a file of the machine and the folders that it lies in.
func (m *Machine) Write(path, content string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.Path(path)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.Path(path), []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// Unit writes a unit file, as muster@.service, and has it read.
func (m *Machine) Unit(name, content string) {
	m.t.Helper()
	m.Write("/etc/systemd/system/"+name, content)
	m.Run("systemctl", "daemon-reload")
}

// Command is a program in the machine, as its root, in none of its units; not started yet.
func (m *Machine) Command(name string, args ...string) *exec.Cmd {
	return m.command(m.t.Context(), name, args...)
}

func (m *Machine) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{
		"--target", strconv.Itoa(m.PID), "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--wd=/", "--", "env", "-i",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "HOME=/root", name,
	}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
}

// Run runs a program in the machine, as systemctl, and returns what it wrote to stdout; the test ends when it fails.
func (m *Machine) Run(name string, args ...string) string {
	m.t.Helper()
	out, err := m.Try(name, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// Try is Run for what may fail.
func (m *Machine) Try(name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := m.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := leash.Run(cmd, 2*m.patience); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout.Bytes(),
			stderr.Bytes())
	}
	return stdout.String(), nil
}

// Properties are those of a unit, as ActiveState, SubState, Result, StatusText, NRestarts, MainPID or ExecMainStatus.
type Properties map[string]string

// Show are a unit's properties now.
func (m *Machine) Show(unit string) Properties {
	m.t.Helper()
	all, err := m.conn.GetAllPropertiesContext(m.t.Context(), unit)
	if err != nil {
		m.t.Fatal(err)
	}
	p := Properties{}
	for name, value := range all {
		p[name] = fmt.Sprint(value)
	}
	return p
}

// Await waits until see says yes to a unit's properties, and returns them. It looks whenever systemd says that some
// have changed; on one goroutine at a time.
func (m *Machine) Await(unit, what string, see func(Properties) bool) Properties {
	m.t.Helper()
	dog := time.NewTimer(m.patience)
	defer dog.Stop()
	for {
		p := m.Show(unit)
		if see(p) {
			return p
		}
		select {
		case <-m.updates:
		case <-m.gone:
			m.t.Fatalf("the machine is down; waited for: %s", what)
		case <-dog.C:
			m.t.Fatalf("not seen within %s: %s of %s: it is %s (%s), %s, exit %s, status %q", m.patience, what, unit,
				p["ActiveState"], p["SubState"], p["Result"], p["ExecMainStatus"], p["StatusText"])
		}
	}
}

// AwaitState waits for an ActiveState: active, inactive, failed, activating, ….
func (m *Machine) AwaitState(unit, state string) Properties {
	m.t.Helper()
	return m.Await(unit, state, func(p Properties) bool { return p["ActiveState"] == state })
}

// Signal sends a signal to a unit's processes: who is main, control or all.
func (m *Machine) Signal(unit, who, signal string) {
	m.t.Helper()
	m.Run("systemctl", "kill", "--kill-whom="+who, "--signal="+signal, unit)
}

// Journal is what a unit wrote and what was said of it.
func (m *Machine) Journal(unit string) string {
	m.t.Helper()
	return m.Run("journalctl", "--no-pager", "--output=cat", "--unit="+unit)
}

// Processes are the pids, as this test sees them, of a unit's processes, those in groups below its own among them.
func (m *Machine) Processes(unit string) []int {
	m.t.Helper()
	group := m.Show(unit)["ControlGroup"]
	if group == "" {
		return nil
	}
	var pids []int
	_ = filepath.WalkDir(filepath.Join(m.cgroup, group), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // a group that is gone has no processes
		}
		text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for line := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(line); err == nil {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}
