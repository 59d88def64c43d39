package publisher

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzPaths: whatever is asked, only who knows the path gets an answer with anything in it; an error says why in JSON; an
// answer in JSON is JSON; nothing stops the app but the route that does.
func FuzzPaths(f *testing.F) {
	for _, a := range asked {
		f.Add(a.verb, prefix+root+"/"+a.path, here, a.body)
	}
	f.Add("GET", prefix+root+"/publisher/exports/%2e%2e", "evil.example", "")
	f.Add("HEAD", prefix+"/ws//v1/slider/application/action/stop", here, "")
	f.Add("GET", prefix+root+"/registry/users/%61da/services", "[::1]:1", "")
	f.Add("PUT", "//", "", strings.Repeat("x", maxBody+1))
	f.Fuzz(func(t *testing.T, method, path, host, body string) {
		u, err := url.Parse(path)
		if err != nil || method == "" || strings.ContainsAny(method, " \t\r\n") {
			return
		}
		s := &source{view: rich()}
		r := httptest.NewRequest("GET", "http://127.0.0.1:4000/", strings.NewReader(body))
		r.Method, r.URL, r.Host = method, u, host
		w := httptest.NewRecorder()
		Handler(prefix, s).ServeHTTP(w, r)

		names, _ := segments(u) // a bad one is refused below
		known := len(names) > 0 && "/"+names[0] == prefix
		if !known && (w.Code != 404 || w.Body.Len() != 0) {
			t.Errorf("%q: got %d %q, want 404 and nothing", path, w.Code, w.Body)
		}
		if len(s.stops) > 0 && (strings.Join(names, "/") != prefix[1:]+root+"/application/action/stop" || method != "GET" && method != "POST") {
			t.Errorf("%s %q stops the app", method, path)
		}
		if known && w.Code >= 400 {
			var why failure
			if err := json.Unmarshal(w.Body.Bytes(), &why); err != nil || why.Error == "" || why.Hint == "" {
				t.Errorf("%s %q: got %d %q (%v), want an error and a hint", method, path, w.Code, w.Body, err)
			}
		}
		if w.Code == 200 && w.Header().Get("Content-Type") == typeJSON && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: got %q, want JSON", path, w.Body)
		}
	})
}
