package systemdmachine_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/systemdmachine"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// unit is a template for a gang's instances, muster@COMPONENT-INDEX.
const unit = `[Unit]
Description=tiny gang, %%i

[Service]
Type=exec
Environment=CONSUL_HTTP_ADDR=%s
ExecStart=/usr/bin/muster agent --app %s --app-id systemd-tiny --engine process
StateDirectory=muster/%%i
RuntimeDirectory=muster
RuntimeDirectoryPreserve=yes
Delegate=yes
KillMode=mixed
`

func TestAGangUnderSystemd(t *testing.T) {
	dir := t.TempDir()
	m := systemdmachine.Start(t, systemdmachine.Options{Binds: map[string]string{muster: "/usr/bin/muster", dir: dir}})
	consul := consulserver.Start(t, consulserver.Options{})
	gang := tinygang.Write(t, dir, 2, nil)
	m.Unit("muster@.service", fmt.Sprintf(unit, consul.HTTPAddr, gang.App))

	units := []string{"muster@ps-0.service", "muster@worker-0.service", "muster@worker-1.service"}
	m.Run("systemctl", append([]string{"start"}, units...)...)
	for _, u := range units {
		if p := m.AwaitState(u, "active"); p["SubState"] != "running" {
			t.Errorf("%s is %s, want running", u, p["SubState"])
		}
	}
	gang.Go(t, 0)
	for _, u := range units {
		p := m.AwaitState(u, "inactive")
		if p["Result"] != "success" || p["ExecMainStatus"] != "0" {
			t.Errorf("%s: got %s, exit %s, want success\n%s", u, p["Result"], p["ExecMainStatus"], m.Journal(u))
		}
		if pids := m.Processes(u); len(pids) != 0 {
			t.Errorf("%s has left processes %v", u, pids)
		}
	}
	var started []string
	for _, s := range gang.Starts(t) {
		started = append(started, fmt.Sprintf("%s %d %d", s.Instance, s.Generation, s.Attempt))
	}
	slices.Sort(started)
	if want := []string{"ps-0 1 1", "worker-0 1 1", "worker-1 1 1"}; !slices.Equal(started, want) {
		t.Errorf("got starts %v, want %v", started, want)
	}
}

func TestUnitsAreStartedKilledAndRestarted(t *testing.T) {
	m := systemdmachine.Start(t, systemdmachine.Options{})
	m.Unit("loop.service", `[Service]
Type=notify
NotifyAccess=all
ExecStart=/bin/sh -c 'systemd-notify --ready --status=begun; echo said; sleep 1000 & wait'
Restart=on-failure
RestartSec=0
`)
	m.Run("systemctl", "start", "loop.service")
	first := m.Await("loop.service", "its own status", func(p systemdmachine.Properties) bool { return p["StatusText"] == "begun" })
	pids := m.Processes("loop.service")
	if len(pids) == 0 {
		t.Fatal("loop.service has no processes")
	}
	m.Signal("loop.service", "main", "SIGKILL")
	m.Await("loop.service", "a restart", func(p systemdmachine.Properties) bool {
		return p["NRestarts"] == "1" && p["ActiveState"] == "active" && p["MainPID"] != first["MainPID"]
	})
	if journal := m.Journal("loop.service"); !strings.Contains(journal, "said\n") {
		t.Errorf("got the journal %q, want what the unit said", journal)
	}
	m.Run("systemctl", "stop", "loop.service")
	if p := m.AwaitState("loop.service", "inactive"); p["Result"] != "success" {
		t.Errorf("after a stop: got %s, want success", p["Result"])
	}
	m.PowerOff()
	if m.Running() {
		t.Error("runs after it was powered off")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("pid %d runs after the machine is gone", pid)
		}
	}
}
