package publisher

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page in a browser of this machine asks: of another origin, or of a name that was bound to the loopback anew. The
// route that stands in front of Slider's is guarded as Slider's are.
func TestAttackByBrowser(t *testing.T) {
	for _, tt := range []struct {
		name, target, host, origin string
		want                       int
	}{
		{"a script of the app", prefix + "/muster/folders", here, "", http.StatusNoContent},
		{"a page of this address", prefix + "/muster/folders", here, "http://" + here, http.StatusNoContent},
		{"a page of another origin", prefix + "/muster/folders", here, "https://evil.example", http.StatusForbidden},
		{"a page of another port", prefix + "/muster/folders", here, "http://127.0.0.1:4001", http.StatusForbidden},
		{"a page without an origin", prefix + "/muster/folders", here, "null", http.StatusForbidden},
		{"a name bound anew", prefix + "/muster/folders", "evil.example:4000", "", http.StatusMisdirectedRequest},
		{"who does not know the URL", "/muster/folders", "evil.example", "https://evil.example", http.StatusNotFound},
		{
			"Slider's stop, of another origin", prefix + root + "/application/action/stop", here, "https://evil.example",
			http.StatusForbidden,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &source{}
			handler := Guarded(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasPrefix(r.URL.Path, prefix+root) {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				Handler(prefix, s).ServeHTTP(w, r)
			}))
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:4000"+tt.target, strings.NewReader(""))
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tt.want || len(s.stops) > 0 {
				t.Errorf("got %d, %d stops; want %d and none", w.Code, len(s.stops), tt.want)
			}
		})
	}
}
