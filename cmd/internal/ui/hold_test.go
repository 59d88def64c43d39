package ui

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/status"
)

// post sends JSON as the server's own page does.
func post(t *testing.T, c *http.Client, base, path, body string) (code int, text string, head http.Header) {
	t.Helper()
	return postFrom(t, c, base, base, path, body)
}

// postFrom sends it as a page of that origin has a browser do.
func postFrom(t *testing.T, c *http.Client, origin, base, path, body string) (code int, text string, head http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", origin)
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var all bytes.Buffer
	if _, err := io.Copy(&all, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, all.String(), answer.Header
}

// A hold goes to the agent that keeps the container, and what that refuses it for is the answer.
func TestHold(t *testing.T) {
	base, state, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	asked := make(chan time.Duration, 1)
	addAgent(t, state, "d1", "worker-0", status.Source{Hold: func(keep time.Duration) error { asked <- keep; return nil }})
	addAgent(t, state, "d1", "worker-1", status.Source{Hold: func(time.Duration) error { return errors.New("worker-1 is running") }})
	code, text, _ := postFrom(t, c, "https://evil.test", base, "/api/v1/apps/d1/instances/worker-0/hold", `{"for": 1}`)
	if code != 403 || !strings.Contains(text, "only this server's own page") || len(asked) > 0 {
		t.Errorf("a stranger's page: %d %s", code, text)
	}
	for _, tt := range []struct {
		instance, body string
		code           int
		says           string
		keep           time.Duration // -1: nobody is asked
	}{
		{"worker-0", `{"for": 7200}`, 200, `"said":""`, 2 * time.Hour},
		{"worker-0", `{"for": 0}`, 200, `"said":""`, 0},
		{"worker-0", `{}`, 400, "body: want for, in seconds from now on, from 1 up to 2592000 (30 days); 0 releases the container", -1},
		{"worker-0", `{"for": 1e-10}`, 400, "0 releases the container", -1}, // it would be rounded to that
		{"worker-0", `{"for": -1}`, 400, "0 releases the container", -1},
		{"worker-0", `{"for": 1e300}`, 400, "0 releases the container", -1},
		{"worker-0", `{"until": 1}`, 400, `body: json: unknown field \"until\"`, -1},
		{"worker", `{"for": 1}`, 400, "worker", -1},
		{"worker-1", `{"for": 1}`, 502, "hold d1/worker-1: worker-1 is running", -1},
		{"worker-2", `{"for": 1}`, 400, "no agent of d1/worker-2 on this host", -1},
	} {
		code, text, _ := post(t, c, base, "/api/v1/apps/d1/instances/"+tt.instance+"/hold", tt.body)
		if code != tt.code || !strings.Contains(text, tt.says) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.instance, tt.body, code, text, tt.code, tt.says)
		}
		keep := time.Duration(-1)
		select {
		case keep = <-asked:
		default: // the answer comes after it
		}
		if keep != tt.keep {
			t.Errorf("%s %s: asked for %s, want %s", tt.instance, tt.body, keep, tt.keep)
		}
	}
}
