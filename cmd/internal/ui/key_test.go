package ui

import (
	"strings"
	"testing"
)

// How long a key lasts has bounds, whatever is answered is kept by no cache, and no other page and no link makes one.
func TestKeyTime(t *testing.T) {
	base, _, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	code, text, _ := postFrom(t, c, "https://evil.test", base, "/api/v1/apps/d1/key", `{}`)
	if code != 403 || !strings.Contains(text, "only this server's own page") {
		t.Errorf("a stranger's page: %d %s", code, text)
	}
	if code, _, _ := get(t, c, base+"/api/v1/apps/d1/key", ""); code != 405 {
		t.Errorf("a link: %d", code)
	}
	for _, tt := range []struct {
		body string
		code int
		says string
	}{
		{`{}`, 502, "who may log in stands there"}, // the run's registry is gone
		{`{"for": 3600}`, 502, "who may log in stands there"},
		{`{"for": 0}`, 400, "body: for: got 0, want the seconds that the key lasts, from 1 up to 604800"},
		{`{"for": -5}`, 400, "got -5, want the seconds"},
		{`{"for": 604801}`, 400, "up to 604800"},
		{`{"until": "2030"}`, 400, `unknown field \"until\"`},
	} {
		code, text, head := post(t, c, base, "/api/v1/apps/d1/key", tt.body)
		if code != tt.code || !strings.Contains(text, tt.says) || head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s (%s), want %d %s", tt.body, code, text, head.Get("Cache-Control"), tt.code, tt.says)
		}
	}
}
