package shim

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/logtimes"
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
	late.open(path, time.Now(), slog.New(slog.DiscardHandler))
	late.close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, missing := bytes.Count(text, []byte("line ")), 0
	for _, said := range regexp.MustCompile(`(?m)^(\d+) lines dropped$`).FindAllSubmatch(text, -1) {
		n, _ := strconv.Atoi(string(said[1])) // digits
		missing += n
	}
	if !bytes.HasPrefix(text, []byte("line 0 ")) || !bytes.HasSuffix(text, []byte(" lines dropped\n")) || kept+missing != lines {
		t.Errorf("got %d lines and %d dropped, the last %q; want the first, all %d, and at the end how many were dropped",
			kept, missing, text[max(0, len(text)-100):], lines)
	}
}

// What an earlier agent logged in the same folder is told from this one's by the time.
func TestLogOfAnEarlierAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	for _, line := range []string{"earlier\n", "this one's\n"} {
		began := time.Now()
		late := newLateFile(io.Discard, dropped)
		_, _ = io.WriteString(late, line)
		late.open(path, began, slog.New(slog.DiscardHandler))
		late.close()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if before := logtimes.Read(path, info).Since(began); before != info.Size()-int64(len(line)) {
			t.Errorf("%q: %d of %d bytes are of the time before", line, before, info.Size())
		}
		if err := os.Chtimes(path, began.Add(-time.Hour), began.Add(-time.Hour)); err != nil { // an hour goes by
			t.Fatal(err)
		}
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
