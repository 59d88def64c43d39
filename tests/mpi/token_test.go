package mpi_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// tokenOf is the token of an app's run, as its record in Consul has it.
func tokenOf(t *testing.T, consul, app string) string {
	t.Helper()
	answer, err := http.Get("http://" + consul + "/v1/kv/muster/" + app + "/app?raw")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // all is read
	var record struct{ Token string }
	if err := json.NewDecoder(answer.Body).Decode(&record); err != nil || len(record.Token) != 64 {
		t.Fatalf("%s: token %q, %v", answer.Status, record.Token, err)
	}
	return record.Token
}

// keeps asserts that a token is in no file of the job and in nothing that muster prints of it.
func (j *job) keeps(token, registry string) {
	j.t.Helper()
	for _, dir := range []string{j.work, j.state} {
		j.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(j.read(path), token) {
				j.t.Errorf("the run's token is in %s", path)
			}
			return err
		}))
	}
	for _, ask := range [][]string{
		{"status", j.app, "--json", "--registry", registry}, {"ps", j.app, "--json", "--registry", registry}, {"logs", j.app + "/worker-1", "--agent"},
	} {
		cmd := j.command(ask...)
		cmd.Env = append(cmd.Env, "MUSTER_AGENT_STATE_DIR="+j.state)
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) == 0 || strings.Contains(string(out), token) {
			j.t.Errorf("muster %s: %v\n%s", strings.Join(ask, " "), err, out)
		}
	}
}
