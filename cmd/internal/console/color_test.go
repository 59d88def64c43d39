package console

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/console/consoletest"
)

// Words have their colour on a terminal alone, and not where NO_COLOR forbids it; a stranger's escapes never pass.
func TestColor(t *testing.T) {
	const head = "NAME PHASE OUTCOME CAUSE"
	rows := [][]string{{"failed", "failed", "", "a \x1b[31mcause"}, {"b", "running", "", "well"}, {"c", "done", "failed", "ill"}}
	plainTable := "NAME    PHASE    OUTCOME  CAUSE\nfailed  failed   -        a \\u001b[31mcause\nb       running  -        well\n" +
		"c       done     failed   ill\n"
	colored := strings.NewReplacer("  failed ", "  \x1b[31mfailed\x1b[0m ", "running", "\x1b[32mrunning\x1b[0m").Replace(plainTable)
	for _, tt := range []struct{ term, noColor, want string }{
		{"xterm", "", colored}, {"xterm", "1", plainTable}, {"dumb", "", plainTable},
	} {
		t.Setenv("TERM", tt.term)
		t.Setenv("NO_COLOR", tt.noColor)
		master, end := consoletest.Terminal(t, 80, 24)
		if err := Table(Printable(end), head, rows); err != nil {
			t.Fatal(err)
		}
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
		var shown bytes.Buffer
		_, _ = io.Copy(&shown, master) // EIO is how a terminal ends
		got := strings.ReplaceAll(shown.String(), "\r\n", "\n")
		if got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	if err := Table(Printable(&out), head, rows); err != nil || out.String() != plainTable {
		t.Errorf("in a pipe: got %q, %v", &out, err)
	}
}
