package training_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
)

// Jupyter answers where it says, and only those who have the token, which nobody but its owner can read.
func TestJupyter(t *testing.T) {
	j := launch(t, "jupyter", "jupyter", "--set", "site.global.jupyter.duration=1h")
	j.Await(t, 0, `^jupyter-0 +\| .* is running at:$`)
	text := string(j.Do("exec", "jupyter/jupyter-0", "--", "sh", "-c", "stat -c %a jupyter.token && cat jupyter.token"))
	mode, token, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if mode != "600" || len(token) < 40 {
		t.Fatalf("got a token of %d characters with mode %s, want 40 or more with 600", len(token), mode)
	}
	if said := j.End(); strings.Contains(said, token) {
		t.Errorf("the token is in what was printed:\n%s", said)
	}
	status := commandline.Parse[commandline.Report](t, j.Do("status", "jupyter", "--registry", j.consul.URL(), "--json"))
	url := status.Instances[0].Exports["jupyter.url"]
	for _, tt := range []struct {
		authorization string
		want          int
	}{{"token " + token, http.StatusOK}, {"token " + strings.Repeat("x", len(token)), http.StatusForbidden}, {"", http.StatusForbidden}} {
		if got := answer(t, url+"/api/contents", tt.authorization); got != tt.want {
			t.Errorf("%s with %q: got %d, want %d", url, tt.authorization, got, tt.want)
		}
	}
	j.Do("stop", "jupyter")
	if code := j.Wait(); code != 0 {
		t.Errorf("got exit code %d of a run that was stopped, want 0\n%s", code, j.End())
	}
}

func answer(t *testing.T, url, authorization string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandline.Watchdog)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req) // past any proxy
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// A place to work in waits, lets one in, and ends well when its time is up.
func TestVPC(t *testing.T) {
	h := commandline.NewHost(t, muster)
	run := h.Start("run", "catalog:vpc", "--app-id", "vpc", "--work-dir", commandline.WorkFolder(t), "--json", "--set", "site.global.vpc.duration=1h")
	run.Await(t, 0, `^vpc-0 +\| muster: running`)
	run.Await(t, 0, `^vpc-0 +\| enter by: muster exec vpc/vpc-0 -- bash$`)
	if got := strings.TrimSpace(string(h.Do("exec", "vpc/vpc-0", "--", "bash", "-c", `echo "$MUSTER_INSTANCE $PWD"`))); !strings.HasPrefix(got, "vpc-0 /") || !strings.HasSuffix(got, "/vpc-0") {
		t.Errorf("got %q, want vpc-0 and its folder", got)
	}
	h.Do("stop", "vpc")
	if code := run.Wait(); code != 0 {
		t.Errorf("got exit code %d of a run that was stopped, want 0\n%s", code, run.End())
	}
	short := h.Do("run", "catalog:vpc", "--app-id", "short", "--work-dir", commandline.WorkFolder(t), "--json", "--set", "site.global.vpc.duration=0.1s")
	if got := commandline.Parse[commandline.Report](t, short); got.Outcome != "succeeded" {
		t.Errorf("got outcome %q when the time was up, want succeeded", got.Outcome)
	}
}
