package systemd_test

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/launchers/job"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// Where the page is, and what is elsewhere in the machine that it is followed on: that of the test's own Consul, and the
// library of this machine's Python, of which the other has the program alone.
const (
	page    = "../../../doc/launcher-systemd.md"
	consul  = "consul://127.0.0.1:8500"
	library = "/usr/lib/python3.11"
)

// TestPage follows what the page on systemd says, from nothing to nothing: it types each line of its consoles, as root, and
// looks for what is quoted.
func TestPage(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(library); err != nil {
		need.Skip(t, "needs Debian's Python: "+err.Error())
	}
	h, _ := inMachine(t, map[string]string{muster: "/root/bin/muster", library: library})
	server := consulserver.Start(t, consulserver.Options{})
	lines := job.Lines(job.Page(t, page), "systemd")
	if len(lines) < 15 {
		t.Fatalf("only %d lines to type", len(lines))
	}
	for _, l := range lines {
		cmd := h.command("sh", "-c", "cd /root && exec 2>&1; "+strings.ReplaceAll(l.Text, consul, server.URL()))
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := leash.Run(cmd, watchdog); err != nil {
			t.Fatalf("%s: %v\n%s", l.Text, err, said.String())
		}
		l.Check(t, said.String())
	}
}
