package frameworks_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/tests/need"
)

// A program that builds TF_CONFIG by hand out of HBox's variables, worker 0 being the chief, must
// come to what we give it ourselves where the app has a chief.
func TestProgramThatBuildsItsOwnConfig(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		need.Skip(t, "needs python3")
	}
	for _, shape := range [][]string{
		{"chief:chief=1"},
		{"ps:ps=1", "chief:chief=1"},
		{"ps:ps=2", "chiefworker:chief=1", "worker:worker=2"},
		{"ps:ps=1", "chief:chief=1", "worker:worker=1", "evaluator:evaluator=1"},
		{"ps:ps=2", "worker:worker=1"},
		{"ps:ps=1", "worker:worker=3"},
	} {
		r := gang(shape...)
		hasChief := slices.ContainsFunc(shape, func(s string) bool { return strings.Contains(s, ":chief=") })
		for _, row := range r.Rows {
			t.Run(strings.Join(shape, ",")+"/"+row.Instance.String(), func(t *testing.T) {
				env, _ := frameworks.Env(planOf(row), r)
				cmd := exec.CommandContext(t.Context(), python, "-E", "../../tests/programs/faq16.py")
				for _, name := range []string{"TF_CLUSTER_DEF", "TF_INDEX", "TF_ROLE"} {
					cmd.Env = append(cmd.Env, name+"="+env[name])
				}
				cmd.Stderr = t.Output()
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("faq16.py: %v", err)
				}
				want := env["TF_CONFIG"]
				if !hasChief {
					want = firstWorkerLeads(t, want)
				}
				if diff := cmp.Diff(decode(t, string(out)), decode(t, want)); diff != "" {
					t.Errorf("the program's TF_CONFIG against ours (-program +ours):\n%s", diff)
				}
			})
		}
	}
}

type config struct {
	Cluster map[string][]string `json:"cluster"`
	Task    struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	} `json:"task"`
}

// firstWorkerLeads turns worker 0 of a TF_CONFIG without a chief into one.
func firstWorkerLeads(t *testing.T, text string) string {
	c := decode(t, text)
	workers := c.Cluster["worker"]
	c.Cluster["chief"] = workers[:1]
	if c.Cluster["worker"] = workers[1:]; len(workers) == 1 {
		delete(c.Cluster, "worker")
	}
	switch {
	case c.Task.Type == "worker" && c.Task.Index == 0:
		c.Task.Type = "chief"
	case c.Task.Type == "worker":
		c.Task.Index--
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func decode(t *testing.T, text string) (c config) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}
