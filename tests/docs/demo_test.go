package docs_test

import (
	"os"
	"regexp"
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
	t.Parallel()
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
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
