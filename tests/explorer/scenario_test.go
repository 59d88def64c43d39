//go:build !race

package explorer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scenario is a story in a file: comments, the setting as JSON on one line, then one choice on each line. A line that
// begins with `want` names the invariant that breaks; without it none may.
type scenario struct {
	set   setting
	story []string
	want  string
}

func (s *setting) scenario(story []string) string {
	return s.String() + "\n" + strings.Join(story, "\n") + "\n"
}

func readScenario(path string) (sc scenario, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return sc, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch want, wanted := strings.CutPrefix(line, "want "); {
		case line == "", strings.HasPrefix(line, "#"):
		case wanted:
			sc.want = want
		case strings.HasPrefix(line, "{"):
			if err := json.Unmarshal([]byte(line), &sc.set); err != nil {
				return sc, fmt.Errorf("%s: %w", path, err)
			}
		default:
			sc.story = append(sc.story, line)
		}
	}
	return sc, nil
}

// TestScenarios replays the stories that once broke an invariant, and those that break one without a rule.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			sc, err := readScenario(path)
			if err != nil {
				t.Fatal(err)
			}
			bad, taken := sc.set.replay(sc.story)
			if kind(bad) != sc.want {
				t.Errorf("got %q after %d of %d choices, want %q", bad, len(taken), len(sc.story), sc.want)
			}
			if sc.set.Without == (rule{}) {
				return
			}
			pair := sc.set
			sc.set.Without, sc.set.And = rule{}, rule{}
			enough := []setting{sc.set} // with the rule the same story is sound; of two, with either
			if pair.And != (rule{}) {
				one, other := pair, pair
				one.And, other.Without = rule{}, rule{}
				enough = append(enough, one, other)
			}
			for _, s := range enough {
				if bad, _ := s.replay(sc.story); bad != "" {
					t.Errorf("with the rule: got %q, want nothing", bad)
				}
			}
		})
	}
}
