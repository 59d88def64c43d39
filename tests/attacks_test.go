package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// attackFunction is the head of a test of an attack.
var attackFunction = regexp.MustCompile(`(?m)^func (TestAttack\w*)\(`)

// TestEachAttackIsTriedOnCgroupV2: scripts/test-v2 names the attacks that it tries as root and those that it tries as a user, and
// each must be one of either.
func TestEachAttackIsTriedOnCgroupV2(t *testing.T) {
	const folder = "shim/sandbox"
	script, err := os.ReadFile("../scripts/test-v2")
	if err != nil {
		t.Fatal(err)
	}
	var chosen []*regexp.Regexp
	for line := range strings.Lines(string(script)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == folder {
			chosen = append(chosen, regexp.MustCompile(words[1]), regexp.MustCompile(words[2]))
		}
	}
	if len(chosen) != 2 {
		t.Fatalf("scripts/test-v2: got %d expressions for %s, want those of root and of the user", len(chosen), folder)
	}
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	attacks := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range attackFunction.FindAllStringSubmatch(string(text), -1) {
			attacks++
			if name := found[1]; !chosen[0].MatchString(name) && !chosen[1].MatchString(name) {
				t.Errorf("scripts/test-v2: %s is tried neither as root nor as a user", name)
			}
		}
	}
	if attacks == 0 {
		t.Errorf("no attack in %s", folder)
	}
}
