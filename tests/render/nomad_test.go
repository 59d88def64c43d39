package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestNomad has Nomad read the HCL, and holds the JSON to what it makes of it.
func TestNomad(t *testing.T) {
	path, bad, err := runs(t, filepath.Join(labs, "nomad"), "path")
	if err != nil {
		t.Fatalf("%v: %s", err, bad)
	}
	nomad := strings.TrimSpace(path)
	asJSON := written(t, "nomad.json")
	for app, dir := range written(t, "nomad.hcl") {
		t.Run(app, func(t *testing.T) {
			if out, bad, err := runs(t, nomad, "job", "validate", "-address=http://127.0.0.1:9", only(t, dir)); err != nil || strings.Contains(bad, "Warning") {
				t.Errorf("validate: %v\n%s%s", err, out, bad)
			}
			out, bad, err := runs(t, nomad, "job", "run", "-output", only(t, dir))
			if err != nil {
				t.Fatalf("%v: %s", err, bad)
			}
			ours, err := os.ReadFile(only(t, asJSON[app]))
			if err != nil {
				t.Fatal(err)
			}
			var want, have any
			if err := json.Unmarshal([]byte(out), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(ours, &have); err != nil {
				t.Fatal(err)
			}
			for _, line := range missing("", have, want) {
				t.Error(line)
			}
			for _, line := range missing("", want, have) {
				t.Errorf("in the HCL alone: %s", line)
			}
		})
	}
}

// missing are the parts of have that want has not, or otherwise. What is empty need not be there, and neither need be what
// Nomad's command line fills in for the API's sake.
func missing(at string, have, want any) []string {
	switch have := have.(type) {
	case map[string]any:
		want, _ := want.(map[string]any)
		var lines []string
		for name, value := range have {
			lines = append(lines, missing(at+"."+name, value, want[name])...)
		}
		return lines
	case []any:
		want, _ := want.([]any)
		if len(want) != len(have) {
			return []string{at + ": of another length"}
		}
		var lines []string
		for i := range have {
			lines = append(lines, missing(at, have[i], want[i])...)
		}
		return lines
	}
	if reflect.DeepEqual(have, want) || empty(have) && empty(want) {
		return nil
	}
	h, _ := json.Marshal(have)
	w, _ := json.Marshal(want)
	return []string{at + ": got " + string(h) + ", want " + string(w)}
}

func empty(v any) bool { return v == nil || v == "" || v == 0.0 || v == false }
