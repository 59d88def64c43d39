package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/container"
)

// dockerDefault is as strict as the profile that Docker loads under that name (moby, profiles/apparmor/template.go); what
// lies in /etc/refused is refused so that a test can tell the profile from other limits.
const dockerDefault = `
profile docker-default flags=(attach_disconnected,mediate_deleted) {
  network,
  capability,
  file,
  umount,
  signal (receive) peer=unconfined,
  signal (send,receive) peer=docker-default,
  deny @{PROC}/* w,
  deny @{PROC}/sysrq-trigger rwklx,
  deny @{PROC}/kcore rwklx,
  deny /sys/firmware/** rwklx,
  deny /sys/kernel/security/** rwklx,
  deny mount,
  ptrace (trace,read,tracedby,readby) peer=docker-default,
  deny /etc/refused/** rwklx,
}
`

// Where another container engine has loaded its profile, containers of a root agent are held by it, and do not start
// with one that is not loaded. In the machine it stays loaded: the tests after this one run under it.
func TestContainerHasTheHostsProfile(t *testing.T) {
	if os.Getenv("MUSTER_MACHINE") != "v2-root" { // a host's own profiles are let alone
		if os.Geteuid() != 0 {
			return // who may not read which are loaded
		}
		if _, err := container.AppArmor("muster-none"); err == nil || !strings.Contains(err.Error(), "muster-none") {
			t.Errorf("a profile that is not there: got %v", err)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "docker-default")
	if err := os.WriteFile(file, []byte("@{PROC}=/proc/\n"+dockerDefault), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "apparmor_parser", "--replace", "--skip-cache", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.MkdirAll("/etc/refused", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll("/etc/refused") })
	if err := os.WriteFile("/etc/refused/file", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := inside(t, containerGuard(t, nil), `cat /proc/self/attr/current; cat /etc/refused/file && echo read; true`)
	if got != "docker-default (enforce)\n" {
		t.Errorf("got %q, want the profile and nothing read", got)
	}
	o := containerOptions(t, func(c *Confinement) { c.App, c.AppArmor = c.App+"-none", "muster-none" })
	if g, err := (Container{Tree: tree(t)}).StartGuard(t.Context(), o); err == nil || !strings.Contains(err.Error(), "apparmor_parser -r") {
		if err == nil {
			_ = g.Close()
		}
		t.Errorf("a profile that is not loaded: got %v", err)
	}
}
