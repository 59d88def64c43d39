package policy

import (
	"path/filepath"
	"strings"
	"testing"
)

// A hint is followed as it stands: after that the policy says it.
func TestAdmit(t *testing.T) {
	for text, want := range map[string]struct{ list, word string }{
		"":               {`write {"version": 1, "ulimits": ["nice"]} to FILE`, `write {"version": 1, "userns": "host"} to FILE`},
		`{"version": 1}`: {`add "ulimits": ["nice"] to FILE`, `add "userns": "host" to FILE`},
		`{"version": 1, "ulimits": [], "userns": "private"}`: {`add ["nice"] to what "ulimits" has in FILE`, `set "userns": "host" in FILE`},
	} {
		path := filepath.Join(t.TempDir(), "policy.json")
		if text != "" {
			writeMode(t, path, text, 0o644)
		}
		p, err := Examine(path, false)
		if err != nil {
			t.Fatal(err)
		}
		for line, want := range map[string]string{`"ulimits": ["nice"]`: want.list, `"userns": "host"`: want.word} {
			if got := strings.ReplaceAll(p.Admit(line), path, "FILE"); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
		if _, paste, ok := strings.Cut(p.Admit(`"ulimits": ["nice"]`), "write "); ok {
			paste, _, _ = strings.Cut(paste, " to ")
			writeMode(t, path, paste, 0o644)
			if p, err := Examine(path, true); err != nil || !p.MayRaise("nice") {
				t.Errorf("%s, as a file: got %v, %v", paste, err, p.MayRaise("nice"))
			}
		}
	}
}

// A key that is there is not told to be added a second time, beside one that is not.
func TestAdmitTwoLines(t *testing.T) {
	lines := []string{`"userns": "host"`, `"refuse_root": false`}
	for text, want := range map[string]string{
		"":                                    `write {"version": 1, "userns": "host", "refuse_root": false} to FILE`,
		`{"version": 1}`:                      `add "userns": "host" to FILE and add "refuse_root": false to FILE`,
		`{"version": 1, "refuse_root": true}`: `add "userns": "host" to FILE and set "refuse_root": false in FILE`,
	} {
		path := filepath.Join(t.TempDir(), "policy.json")
		if text != "" {
			writeMode(t, path, text, 0o644)
		}
		p, err := Examine(path, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(p.Admit(lines...), path, "FILE"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
