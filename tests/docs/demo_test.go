package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// missing is the exit code of scripts/demo when the machine lacks something.
const missing = 69

// TestDemo runs the demonstration whole and looks at what it shows.
func TestDemo(t *testing.T) {
	temp := folder.Temp(t, "md-")
	environ := append(os.Environ(), "MUSTER_AGENT_STATE_DIR="+t.TempDir(), "TMPDIR="+temp, "MAKEFLAGS=")
	output, code := command(t, checkout, environ, "scripts/demo")
	if code == missing && strings.Contains(output, "demo: missing:") {
		need.Skip(t, output)
	}
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	for _, back := range []string{`demo: worker-1 is back at step (\d+)`, `demo: ps-0 is back from the checkpoint of step (\d+)`} {
		m := regexp.MustCompile(back).FindStringSubmatch(output)
		if m == nil {
			t.Errorf("nothing like %s in\n%s", back, output)
			continue
		}
		if step, err := strconv.Atoi(m[1]); err != nil || step <= 0 {
			t.Errorf("%s: came back from zero", m[0])
		}
	}
	if !regexp.MustCompile(`demo: verdict succeeded, [2-9] restarts`).MatchString(output) {
		t.Errorf("no good verdict in\n%s", output)
	}
	quotesOf(t, output)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// quotesOf looks for the lines that the README quotes of the demonstration.
func quotesOf(t *testing.T, output string) {
	t.Helper()
	blocks, _ := fences(read(t, "README.md"))
	i := slices.IndexFunc(blocks, func(b fence) bool {
		return slices.ContainsFunc(b.text, func(line string) bool { return strings.HasPrefix(line, "demo: ") })
	})
	if i < 0 {
		t.Fatal("the README does not quote the demonstration")
	}
	said := map[string]bool{}
	for line := range strings.Lines(output) {
		said[shape(line)] = true
	}
	for n, line := range blocks[i].text {
		if line != "…" && !depends(line) && !said[shape(line)] {
			t.Errorf("README.md:%d: the demonstration says nothing like %q in\n%s", blocks[i].line+n, line, output)
		}
	}
}

var (
	took   = regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?s\b`)
	worker = regexp.MustCompile(`\bworker-\d`)
	number = regexp.MustCompile(`\d+(\.\d+)?`)
)

// shape is a line without what differs from one run to the next: numbers, times, and which worker it was.
func shape(line string) string {
	line = took.ReplaceAllString(strings.TrimSpace(line), "TIME")
	return number.ReplaceAllString(worker.ReplaceAllString(line, "worker"), "N")
}

// depends tells of a line that comes only when one process is faster than another.
func depends(line string) bool {
	return strings.Contains(line, "joining at step") || strings.Contains(line, "lost ps")
}

func TestShape(t *testing.T) {
	a := shape("demo-1795170732-6523: succeeded after 37.8s, 2 restarts, worker-1 at 127.0.0.1:26048\n")
	b := shape("demo-18-2: succeeded after 1m2s, 2 restarts, worker-2 at 127.0.0.1:20001")
	if a != b {
		t.Errorf("got %q and %q, want the same", a, b)
	}
	if shape("1 restart") == shape("1 restarts") {
		t.Error("words are lost")
	}
}
