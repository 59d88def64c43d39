package systemd_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// Where the page is, and what is elsewhere in the machine that it is followed on: that of the test's own Consul, and the
// library of this machine's Python, of which the other has the program alone.
const (
	page    = "../../../doc/launchers.md"
	section = "\n## systemd\n"
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
	lines := linesOf(t)
	if len(lines) < 15 {
		t.Fatalf("only %d lines to type", len(lines))
	}
	for _, l := range lines {
		cmd := h.command("sh", "-c", "cd /root && exec 2>&1; "+strings.ReplaceAll(l.text, consul, server.URL()))
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := leash.Run(cmd, watchdog); err != nil {
			t.Fatalf("%s: %v\n%s", l.text, err, said.String())
		}
		for _, quoted := range l.says {
			if !says(said.String(), quoted) {
				t.Errorf("%s: does not say %q but\n%s", l.text, quoted, said.String())
			}
		}
	}
}

// line is one to type, and what it says.
type line struct {
	text string
	says []string // … stands for anything
}

// linesOf are those of the consoles of the page's part on systemd: of those that are typed on any machine (tests/docs), and
// of those that want systemd.
func linesOf(t *testing.T) []line {
	t.Helper()
	document, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(document), section)
	if !ok {
		t.Fatal("the page has no part on systemd")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var found []line
	console := false
	for text := range strings.SplitSeq(part, "\n") {
		if mark, ok := strings.CutPrefix(text, "```"); ok {
			console = mark == "console" || mark == "console systemd"
			continue
		}
		typed, isTyped := strings.CutPrefix(text, "$ ")
		switch {
		case !console:
		case isTyped:
			found = append(found, line{text: typed})
		case strings.TrimSpace(text) != "" && text != "…" && len(found) > 0:
			last := &found[len(found)-1]
			last.says = append(last.says, text)
		}
	}
	return found
}

// says tells whether an output has a line as quoted.
func says(output, quoted string) bool {
	form := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(quoted, " ")), "…", ".*")
	return regexp.MustCompile(`(?m)^` + form + ` *$`).MatchString(output)
}
