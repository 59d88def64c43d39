package shim

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func dropped(n int) []byte { return fmt.Appendf(nil, "%d lines dropped\n", n) }

// An agent that stands by for long has written more than is kept for its file: the file has the first of it, and says
// how much is missing.
func TestLogBeforeTheInstanceIsKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worker-0", "agent.log")
	late := newLateFile(io.Discard, dropped)
	const lines = 10_000
	for n := range lines {
		if _, err := fmt.Fprintf(late, "line %d %s\n", n, strings.Repeat("x", 80)); err != nil {
			t.Fatal(err)
		}
	}
	late.open(path, slog.New(slog.DiscardHandler))
	late.close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Count(text, []byte("line "))
	if want := fmt.Sprintf("\n%d lines dropped\n", lines-kept); !bytes.HasPrefix(text, []byte("line 0 ")) ||
		!bytes.HasSuffix(text, []byte(want)) {
		t.Errorf("got %d lines, the last %q; want the first, and at the end %q", kept, text[max(0, len(text)-100):], want)
	}
}

// The agent ends before it has an index: nothing waits for a file that never comes.
func TestLogWithoutAnInstance(t *testing.T) {
	var terminal bytes.Buffer
	late := newLateFile(&terminal, dropped)
	if _, err := late.Write([]byte("refused\n")); err != nil {
		t.Fatal(err)
	}
	late.close()
	if got := terminal.String(); got != "refused\n" {
		t.Errorf("got %q on the terminal", got)
	}
}
