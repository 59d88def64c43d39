package confine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// doctor says of each thing what it found, and what to do where something is missing.
func TestDoctor(t *testing.T) {
	need.Root(t)
	for name, j := range map[string]*job{"root": blankJob(t, nil), "a plain user": blankJob(t, plainUser())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, said, code := j.verb("doctor", "--json")
			if code != 0 {
				t.Fatalf("doctor ended with %d: %s%s", code, out, said)
			}
			var answer struct {
				Version int
				Checks  []struct {
					Name, Found, Remedy string
					OK                  *bool
				}
			}
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			found := map[string]string{}
			for _, c := range answer.Checks {
				found[c.Name] = c.Found
				switch {
				case c.OK == nil || c.Found == "":
					t.Errorf("%s: says nothing", c.Name)
				case *c.OK != (c.Remedy == ""):
					t.Errorf("%s: ok %v, found %q, remedy %q; want a remedy for what is not", c.Name, *c.OK, c.Found, c.Remedy)
				}
			}
			for _, name := range []string{"engine", "containers", "cgroup", "delegation", "cgroup features", "images", "gpu", "policy", "python3", "registry", "guard"} {
				if found[name] == "" {
					t.Errorf("no line about %s in %v", name, found)
				}
			}
			if engine := j.engine(); !strings.HasPrefix(found["engine"], engine) {
				t.Errorf("engine: %q, and the plan has %s", found["engine"], engine)
			}
			text, _, _ := j.verb("doctor")
			if lines := strings.Count(text, "\n"); lines < len(answer.Checks) {
				t.Errorf("%d lines for %d checks:\n%s", lines, len(answer.Checks), text)
			}
		})
	}
}

// engine is the one that auto takes.
func (j *job) engine() string {
	j.define("true", nil)
	return j.plan().Engine.Name
}
