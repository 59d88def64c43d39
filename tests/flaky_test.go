package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What fails and then passes alone does not fail a run of scripts/test, and what fails each time does.
func TestFlakyTestsPass(t *testing.T) {
	script, err := os.ReadFile("../scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?ms)^tests\(\) \{.*?^\}`).Find(script)
	if function == nil {
		t.Fatal("scripts/test: no function `tests`")
	}
	work := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(work, "tally"), "../scripts/tally").CombinedOutput(); err != nil { //nolint:noctx // it ends by itself
		t.Fatalf("%s: %v", out, err)
	}
	const fails = `func TestAt(t *testing.T) { if _, err := os.Stat("seen"); err != nil { os.WriteFile("seen", nil, 0o600); t.Error("not yet") } }`
	for _, tt := range []struct {
		name, body, says string
		fails            bool
	}{
		{name: "flaky", body: fails, says: "FLAKY example.com/m TestAt: passed alone at try 1"},
		{name: "failed", body: `func TestAt(t *testing.T) { _ = os.Args; t.Error("no") }`, says: "FAIL  example.com/m TestAt", fails: true},
		{name: "not built", body: `func TestAt(t *testing.T) { _ = os.Args; undefined() }`, says: "undefined: undefined", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			room := t.TempDir()
			for name, text := range map[string]string{
				"go.mod": "module example.com/m\n\ngo 1.26\n", "at_test.go": "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" + tt.body + "\n",
			} {
				if err := os.WriteFile(filepath.Join(room, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			const head = "set -uo pipefail; work=$1 counts=$1/counts summary=$1/summary limit=1m no_skips=(-no-skips)\n"
			cmd := exec.Command("bash", "-c", head+string(function)+"\ntests '' .", "scripts/test", work) //nolint:noctx // it ends by itself
			cmd.Dir = room
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.says) {
				t.Errorf("got %v, want a failure: %v, and %q:\n%s", err, tt.fails, tt.says, out)
			}
		})
	}
}
