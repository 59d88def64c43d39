package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestReadmeAgents types the README's line for a container twice, once for each of the two places of the manual's smallest package,
// against a real Consul; then again without saying which place, and looks at the outcome through Consul alone.
func TestReadmeAgents(t *testing.T) {
	server := consulserver.Start(t, consulserver.Options{})
	text := read(t, "README.md")
	first := agentLine(t, text)
	for from, to := range map[string]string{"--app DIR": "--app hello", "consul://127.0.0.1:8500": server.URL()} {
		if !strings.Contains(first, from) {
			t.Fatalf("the README's agent line has no %s: %s", from, first)
		}
		first = strings.ReplaceAll(first, from, to)
	}
	d := newDesk(t)
	d.smallest()
	second := strings.Replace(first, "--index 0", "--index 1", 1)
	both(t, d, first, second)
	said(t, d, 1, "I am worker-0 of 2", "I am worker-1 of 2")

	unplaced := strings.Replace(first, "--component worker --index 0 ", "", 1) + " --run again"
	both(t, d, unplaced, unplaced)
	said(t, d, 2, "I am worker-0 of 2", "I am worker-1 of 2")

	output, code := d.types("rm -r .state && bin/muster ps d1 --registry " + server.URL())
	if code != 0 || !says(output, "… verdict …succeeded: all 2 instances of worker are done") {
		t.Errorf("ps: exit code %d\n%s", code, output)
	}
}

// agentLine is the command line for a container that a document shows.
func agentLine(t *testing.T, document string) string {
	t.Helper()
	for _, s := range spans(document) {
		if strings.HasPrefix(s.code, "bin/muster agent ") {
			return s.code
		}
	}
	t.Fatal("the README shows no bin/muster agent")
	return ""
}

// both runs two lines at the same time and wants zero of each.
func both(t *testing.T, d desk, first, second string) {
	t.Helper()
	output, code := d.types(fmt.Sprintf("%s & first=$!; %s; second=$?; wait $first && exit $second", first, second))
	if code != 0 {
		t.Fatalf("exit code %d of %s, or of %s\n%s", code, first, second, output)
	}
}

// said wants these lines in the logs of the instances, each as often as there were runs.
func said(t *testing.T, d desk, runs int, lines ...string) {
	t.Helper()
	output, _ := d.types("cat .home/.local/state/muster/d1/log/*/stdout.log")
	for _, line := range lines {
		if n := strings.Count(output, line+"\n"); n != runs {
			t.Errorf("after run %d %q stands %d times in\n%s", runs, line, n, output)
		}
	}
}
