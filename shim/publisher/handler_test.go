package publisher

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// watchdog is when a test that waits for an event gives up.
const watchdog = 30 * time.Second

const prefix = "/0123456789abcdef0123456789abcdef"

// source has one view, or an error, and counts who asked for a stop.
type source struct {
	view  View
	err   error
	stops []string
}

func (s *source) View(context.Context) (View, error) { return s.view, s.err }

func (s *source) Stop(ctx context.Context, by string) error {
	if s.err != nil {
		return s.err
	}
	s.stops = append(s.stops, by)
	return ctx.Err()
}

// do sends one request to the handler, by way of no network.
func do(s viewSource, method, target, host, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:4000"+target, strings.NewReader(body))
	r.Host = host
	w := httptest.NewRecorder()
	Handler(prefix, s).ServeHTTP(w, r)
	return w
}

const here = "127.0.0.1:4000"

func TestRefusals(t *testing.T) {
	const slider = prefix + root
	for _, tt := range []struct {
		name, method, target, host, body string
		status                           int
		text                             string // of the error; "": no body
	}{
		{"no prefix", "GET", root + "/publisher", here, "", 404, ""},
		{"nothing", "GET", "/", here, "", 404, ""},
		{"another prefix", "GET", "/1123456789abcdef0123456789abcdef" + root, here, "", 404, ""},
		{"half a prefix", "GET", prefix[:20] + root, here, "", 404, ""},
		{"a longer prefix", "GET", prefix + "0" + root, here, "", 404, ""},
		{"another prefix, another host", "GET", "/x" + root, "evil.example", "", 404, ""},
		{"a name bound anew", "GET", slider + "/publisher", "evil.example:4000", "", 421, `host "evil.example:4000" is not this address`},
		{"another address", "GET", slider + "/publisher", "10.0.0.1:4000", "", 421, `host "10.0.0.1:4000" is not this address`},
		{"no host", "GET", slider + "/publisher", "", "", 421, `host "" is not this address`},
		{"stop by a name bound anew", "GET", slider + "/application/action/stop", "evil.example", "", 421, `host "evil.example" is not this address`},
		{"the prefix alone", "GET", prefix, here, "", 404, "GET / is not here"},
		{"above the root", "GET", prefix + "/ws/v1", here, "", 404, "GET /ws/v1 is not here"},
		{"an unknown route", "GET", slider + "/agents", here, "", 404, "GET /ws/v1/slider/agents is not here"},
		{"dots lead nowhere", "GET", slider + "/publisher/../application", here, "", 404, "no set of configurations .."},
		{"set", "GET", slider + "/publisher/other", here, "", 404, "no set of configurations other"},
		{"configuration", "GET", slider + "/publisher/slider/none", here, "", 404, "no configuration none"},
		{"form of a configuration", "GET", slider + "/publisher/slider/tf-site.yaml", here, "", 404, "no configuration tf-site.yaml"},
		{"configuration in another set", "GET", slider + "/publisher/x/tf-site", here, "", 404, "no set of configurations x"},
		{"property", "GET", slider + "/publisher/slider/tf-site/none", here, "", 404, "no property none in configuration tf-site"},
		{"property of no configuration", "GET", slider + "/publisher/slider/none/p", here, "", 404, "no configuration none"},
		{"container", "GET", slider + "/application/live/containers/c", here, "", 404, "unknown container: c"},
		{"a lost container", "GET", slider + "/application/live/containers/container_17_0001_01_worker-2", here, "", 404, "unknown container: container_17_0001_01_worker-2"},
		{"component", "GET", slider + "/application/live/components/PS", here, "", 404, "unknown component: PS"},
		{"node", "GET", slider + "/application/live/nodes/h9", here, "", 404, "unknown node: h9"},
		{"model", "GET", slider + "/application/model/real", here, "", 404, "no model real"},
		{"document", "GET", slider + "/application/model/desired/internal", here, "", 404, "no document internal"},
		{"another user's app", "GET", slider + "/registry/users/bob", here, "", 404, "nothing at /registry/users/bob"},
		{"below a record", "GET", slider + "/" + service + "/components/worker-1/x", here, "", 404, "nothing at /" + service + "/components/worker-1/x"},
		{"a lost component's record", "GET", slider + "/" + service + "/components/container-17-0001-01-worker-2", here, "", 404, "nothing at /" + service + "/components/container-17-0001-01-worker-2"},
		{"post where one reads", "POST", slider + "/publisher", here, "", 405, "POST is not answered here"},
		{"options", "OPTIONS", slider + "/publisher/exports", here, "", 405, "OPTIONS is not answered here"},
		{"a flex by PUT", "PUT", slider + "/application/model/desired/resources", here, "{}", 405, "PUT is not answered here"},
		{"head of stop", "HEAD", slider + "/application/action/stop", here, "", 405, "HEAD is not answered here"},
		{"delete of stop", "DELETE", slider + "/application/action/stop", here, "", 405, "DELETE is not answered here"},
		{"a body without end", "POST", slider + "/application/action/stop", here, strings.Repeat("x", maxBody+1), 413, "body: more than 65536 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &source{view: rich()}
			w := do(s, tt.method, tt.target, tt.host, tt.body)
			if w.Code != tt.status {
				t.Errorf("got %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			var f failure
			if text := w.Body.String(); text != "" {
				if err := json.Unmarshal([]byte(text), &f); err != nil || f.Hint == "" {
					t.Errorf("got body %q (%v), want an error and a hint", text, err)
				}
			}
			if f.Error != tt.text {
				t.Errorf("got %q, want %q", f.Error, tt.text)
			}
			if len(s.stops) != 0 {
				t.Errorf("asked to stop: %q", s.stops)
			}
			for _, h := range []string{"Access-Control-Allow-Origin", "Location"} {
				if w.Header().Get(h) != "" {
					t.Errorf("%s: %s", h, w.Header().Get(h))
				}
			}
		})
	}
}

func TestHosts(t *testing.T) {
	local := netip.MustParseAddr("192.0.2.7")
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:80": true, "127.9.9.9:80": true, "localhost": true, "localhost:80": true, "[::1]:80": true, "[::1]": true,
		"192.0.2.7": true, "192.0.2.7:80": true, "[::ffff:192.0.2.7]:80": true,
		"": false, ":80": false, "192.0.2.8": false, "127.0.0.1.example": false, "localhost.example": false, "192.0.2.7.nip.example:80": false, "0.0.0.0:80": false,
	} {
		if got := hostAllowed(host, local); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
	if hostAllowed("192.0.2.7", netip.Addr{}) {
		t.Error("an address is taken for ours where ours is not known")
	}
}

func TestPathForms(t *testing.T) {
	want := do(&source{view: rich()}, "GET", prefix+root+"/publisher/exports/ps", here, "").Body.String()
	for _, target := range []string{
		prefix + "/" + root + "/publisher/exports/ps", // a base with a slash at its end
		prefix + root + "/publisher/exports/ps/",
		prefix + root + "/publisher/exports/Ps",
		prefix + root + "/publisher/exports/%70s",
		prefix + root + "/publisher/exports/ps?x=1",
	} {
		if w := do(&source{view: rich()}, "GET", target, here, ""); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: got %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

func TestNoContent(t *testing.T) {
	for _, group := range []string{"later", "none"} { // of metainfo, and of nobody
		w := do(&source{view: rich()}, "GET", prefix+root+"/publisher/exports/"+group, here, "")
		if w.Code != 204 || w.Body.Len() != 0 {
			t.Errorf("%s: got %d %q, want 204 and no body", group, w.Code, w.Body)
		}
	}
}

func TestStop(t *testing.T) {
	for _, verb := range []string{"GET", "POST"} {
		s := &source{view: rich()}
		r := httptest.NewRequest(verb, "http://"+here+prefix+root+"/application/action/stop", strings.NewReader("{}"))
		ctx, gone := context.WithCancel(t.Context())
		gone() // a script that does not wait has asked all the same
		w := httptest.NewRecorder()
		Handler(prefix, s).ServeHTTP(w, r.WithContext(ctx))
		if want := []string{"slider action/stop by " + verb}; w.Code != 200 || !cmp.Equal(s.stops, want) {
			t.Errorf("got %d %q, want 200 %q", w.Code, s.stops, want)
		}
	}
}

func TestRegistryAway(t *testing.T) {
	for _, tt := range []struct {
		path   string
		status int
		text   string
	}{
		{"/publisher/exports", 503, "read the app: no leader"},
		{"/application/live/resources", 503, "read the app: no leader"},
		{"/application/action/stop", 503, "stop: no leader"},
		{"/application/action/ping", 200, ""},
		{"/application/live", 200, ""},
	} {
		w := do(&source{err: errors.New("no leader")}, "GET", prefix+root+tt.path, here, "")
		var f failure
		_ = json.Unmarshal(w.Body.Bytes(), &f) // a list is none
		if w.Code != tt.status || f.Error != tt.text {
			t.Errorf("%s: got %d %s, want %d %q", tt.path, w.Code, w.Body, tt.status, tt.text)
		}
	}
}

// TestServe asks over a real socket, as a script does.
func TestServe(t *testing.T) {
	s := &source{view: rich()}
	l, address, err := Listen("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, Handler(Prefix(address), s)) }()
	client := &http.Client{Timeout: watchdog}
	t.Cleanup(client.CloseIdleConnections)
	for _, tt := range []struct {
		method, url string
		status      int
		body        bool
	}{
		{"GET", address + root + "/publisher/exports/ps", 200, true},
		{"HEAD", address + root + "/publisher/exports/ps", 200, false},
		{"GET", strings.Replace(address, "127.0.0.1", "localhost", 1) + root + "/application/live", 200, true},
		{"GET", strings.TrimSuffix(address, Prefix(address)) + root + "/publisher", 404, false},
		{"GET", address + root + "/application/action/stop", 200, true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tt.status || (len(text) > 0) != tt.body {
			t.Errorf("%s %s: got %d with %d bytes, want %d, body %v", tt.method, tt.url, resp.StatusCode, len(text), tt.status, tt.body)
		}
		if tt.method == "HEAD" && resp.ContentLength <= 0 {
			t.Errorf("HEAD: got length %d, want the answer's", resp.ContentLength)
		}
	}
	end()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(watchdog):
		t.Fatal("the server does not end")
	}
	if len(s.stops) != 1 {
		t.Errorf("asked to stop: got %q, want once", s.stops)
	}
}

func TestListen(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		l, address, err := Listen("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if !l.Addr().(*net.TCPAddr).IP.IsLoopback() { //nolint:forcetypeassert // a TCP listener's
			t.Errorf("got %s, want the loopback", l.Addr())
		}
		if p := Prefix(address); len(p) != 33 || seen[p] || !strings.HasPrefix(address, "http://"+l.Addr().String()+"/") {
			t.Errorf("got %s, want the address and 32 hex digits of its own", address)
		}
		seen[Prefix(address)] = true
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, host := range []string{"0.0.0.0", "::"} {
		if _, _, err := Listen(host); err == nil {
			t.Errorf("listens on %s, which no URL can name", host)
		}
	}
}

// Nobody may answer to an empty secret.
func TestNoSecretNoAnswer(t *testing.T) {
	for _, bad := range []string{"", "/", Prefix("http://[")} {
		w := httptest.NewRecorder()
		Handler(bad, &source{view: rich()}).ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1"+root+"/publisher", nil))
		if w.Code != 404 {
			t.Errorf("prefix %q: got %d, want 404", bad, w.Code)
		}
	}
}
