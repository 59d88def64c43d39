package submit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/systemdmachine"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// On the host itself nothing needs a store.
func TestSystemd(t *testing.T) {
	dir := t.TempDir()
	m := systemdmachine.Start(t, systemdmachine.Options{Binds: map[string]string{muster: "/usr/local/bin/muster", dir: dir}})
	consul := consulserver.Start(t, consulserver.Options{})
	gang := tinygang.Write(t, dir, 1, nil)
	tiny := fmt.Sprintf("tiny-%d", os.Getpid()) // machines share the network, and with it the names of what is in use
	words := []string{
		"muster", "submit", "systemd", gang.App, "--app-id", tiny, "--privileged", "--engine", "process", "--registry", "consul://" + consul.HTTPAddr,
		"--wait",
	}
	one := begin(t, m.Command(words[0], words[1:]...))
	one.says("running: 2 instances, generation 1")
	if out, err := m.Command(words[0], words[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(out), "runs there already") {
		t.Errorf("a second one beside it: %v\n%s", err, out)
	}
	gang.Go(t, 0)
	if code := one.ends(); code != 0 || !strings.HasPrefix(one.out.String(), "muster-"+tiny+".target\n"+tiny+": succeeded") {
		t.Errorf("got %d\n%s%s", code, one.out.String(), one.err.String())
	}
	for _, unit := range []string{"muster-" + tiny + "@ps-0.service", "muster-" + tiny + "@worker-0.service"} {
		if p := m.AwaitState(unit, "inactive"); p["Result"] != "success" {
			t.Errorf("%s: got %s, want success\n%s", unit, p["Result"], m.Journal(unit))
		}
	}
}
