package commandline

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// transcript is what a command prints, line by line, for those who wait for a line.
type transcript struct {
	mu    sync.Mutex
	lines []string
	rest  []byte
	grown chan struct{} // closed and replaced when there is more
	over  bool
}

var _ io.Writer = (*transcript)(nil)

func newTranscript() *transcript { return &transcript{grown: make(chan struct{})} }

// Write takes bytes; whole lines become visible.
func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest = append(t.rest, b...)
	for {
		line, rest, whole := bytes.Cut(t.rest, []byte("\n"))
		if !whole {
			break
		}
		t.lines = append(t.lines, string(line))
		t.rest = rest
	}
	t.tell()
	return len(b), nil
}

// close says that nothing more will come.
func (t *transcript) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.tell()
}

func (t *transcript) tell() {
	close(t.grown)
	t.grown = make(chan struct{})
}

// since is what was printed from a position on, and how to hear of more.
func (t *transcript) since(from int) (lines []string, over bool, grown <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines[from:], t.over, t.grown
}

// Mark is the position behind the last line printed so far.
func (t *transcript) Mark() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lines)
}

// AwaitWhere waits for a line, from a position on, that the pattern matches and ok takes. It gives
// the groups and the position behind the line.
func (t *transcript) AwaitWhere(
	tb testing.TB, from int, pattern string, ok func(groups []string) bool,
) (groups []string, next int) {
	tb.Helper()
	re := regexp.MustCompile(pattern)
	timer := time.NewTimer(Watchdog)
	defer timer.Stop()
	for {
		lines, over, grown := t.since(from)
		for i, line := range lines {
			if m := re.FindStringSubmatch(line); m != nil && ok(m[1:]) {
				return m[1:], from + i + 1
			}
		}
		from += len(lines)
		if over {
			tb.Fatalf("ended without a line like %s; its end:\n%s", pattern, t.End())
		}
		select {
		case <-grown:
		case <-timer.C:
			tb.Fatalf("no line like %s within %s; so far:\n%s", pattern, Watchdog, t.End())
		}
	}
}

// Await waits for a line that the pattern matches.
func (t *transcript) Await(tb testing.TB, from int, pattern string) (groups []string, next int) {
	tb.Helper()
	return t.AwaitWhere(tb, from, pattern, func([]string) bool { return true })
}

// End is the last part of what was printed.
func (t *transcript) End() string {
	const most = 60
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-most):], "\n") + "\n" + string(t.rest)
}
