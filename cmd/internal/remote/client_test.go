package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// serve is a page that answers like this, and a client of it.
func serve(t *testing.T, answer http.HandlerFunc) *client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := open(server.URL, "anns-token")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestOpen(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://page.example.org": true, "https://page.example.org:8443/": true, "http://127.0.0.1:8080": true,
		"http://localhost:8080": true, "http://[::1]:8080": true, "http://page.example.org": false, "page.example.org": false,
		"https://ann:token@page.example.org": false, "https://page.example.org/apps": false, "https://page.example.org?x": false,
		"ftp://127.0.0.1": false, "": false, "https://": false,
	} {
		_, err := Open(address, "t")
		if ok && err != nil || !ok && exit.CodeOf(err) != exit.Usage {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// What a page refuses has the exit code that a host of the registry would have, and names the page where it speaks of it.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		code  int
		body  string
		exit  int
		is    error
		wants string
	}{
		{401, "Who asks is not known here", exit.Forbidden, registry.ErrForbidden, "it does not know the token of this user"},
		{403, `{"error": "registry forbids it", "code": 77}`, exit.Forbidden, registry.ErrForbidden, "registry forbids it"},
		{404, `{"error": "no app \"d1\"", "code": 64}`, exit.Usage, registry.ErrNoApp, `no app "d1"`},
		{503, `{"error": "registry x: unreachable", "code": 69}`, exit.Registry, registry.ErrUnreachable, "registry x: unreachable"},
		{502, `{"error": "it is over"}`, 1, nil, "it is over"},
		{404, "404 page not found", exit.Registry, nil, "does not answer /api/v1/registry: it is no muster ui, or one of an earlier"},
		{421, "This server answers as x only.\nmore", exit.Registry, nil, `it answers 421 Misdirected Request: "This server answers as x only."`},
		{502, strings.Repeat("x", 4096), exit.Registry, nil, `it answers 502 Bad Gateway: "xxxx`},
		{200, "<html>", exit.Registry, nil, "its answer cannot be read"},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.code)
			_, _ = w.Write([]byte(tt.body))
		})
		_, err := c.Address(t.Context())
		if err == nil || exit.CodeOf(err) != tt.exit || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.wants) ||
			len(err.Error()) > 500 || !strings.Contains(tt.body, `"error"`) && !strings.Contains(err.Error(), c.base.String()) {
			t.Errorf("%d %.40s: %v, exit code %d", tt.code, tt.body, err, exit.CodeOf(err))
		}
	}
}

// The token is shown to the page, and to nobody to whom it leads.
func TestRedirect(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer anns-token" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the page was shown %v", r.Header)
		}
		http.Redirect(w, r, other.URL+"/api/v1/registry", http.StatusTemporaryRedirect)
	})
	if _, err := c.Address(t.Context()); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "it leads to "+other.URL) {
		t.Error(err)
	}
	agent := c.Agent("d1", "worker-0")
	defer agent.Close()
	if err := agent.Signal(t.Context(), "KILL"); err == nil {
		t.Error("an agent's answer may lead elsewhere")
	}
	if asked.Load() != 0 {
		t.Error("the other server was asked")
	}
}

// endless is an answer without an end.
func endless(w http.ResponseWriter, _ *http.Request) {
	part := []byte(strings.Repeat(" ", 1<<20))
	for {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

func TestHugeAnswer(t *testing.T) {
	c := serve(t, endless)
	if _, err := c.Address(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Error(err)
	}
}

func TestUntrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	defer server.Close()
	c, err := open(server.URL, "t")
	if err == nil {
		_, err = c.Address(t.Context())
	}
	if exit.CodeOf(err) != exit.Forbidden || !strings.Contains(err.Error(), "SSL_CERT_FILE names a file") || errors.Is(err, registry.ErrUnreachable) {
		t.Error(err)
	}
}

// silent is a page that takes requests and never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A page that does not answer is waited for as long as a registry, and a verdict as long as its caller likes.
func TestSilentPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := open("https://page.example.org", "t")
		if err != nil {
			t.Fatal(err)
		}
		c.http = &http.Client{Transport: silent{}}
		began := time.Now()
		_, err = c.Address(t.Context())
		if took := time.Since(began); took != 6*time.Second || !errors.Is(err, registry.ErrUnreachable) || exit.CodeOf(err) != exit.Registry ||
			!strings.Contains(err.Error(), "page https://page.example.org: it cannot be reached: no answer in 6s") {
			t.Errorf("after %s: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err = c.WaitVerdict(ctx, "d1", "1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour+6*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A request goes in this user's name, unless they may look only: then it is not made.
func TestAsk(t *testing.T) {
	for _, act := range []bool{true, false} {
		var asked atomic.Int32
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				asked.Add(1)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"version": 1, "user": "ann", "act": act, "asked": true})
		})
		err := c.Ask(t.Context(), "d1", registry.Ask{Kind: registry.AskStop})
		if act && (err != nil || asked.Load() != 1) || !act && (exit.CodeOf(err) != exit.Forbidden || asked.Load() != 0) {
			t.Errorf("act %v: %v, asked %d times", act, err, asked.Load())
		}
	}
}

// What a page leaves out of its list is told, as a registry's.
func TestListedWarnings(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(apps.Listing{Version: 1, Apps: []apps.Row{{App: "d1"}}, Warnings: []string{"d2: left \x1b[1mout\n"}})
	})
	var warned strings.Builder
	rows, err := apps.Lookup{Page: c, Warn: &warned, State: status.Dir(t.TempDir())}.List(t.Context())
	if err != nil || len(rows) != 1 || !strings.HasPrefix(warned.String(), "d2: left ") || strings.Contains(warned.String(), "\x1b") {
		t.Errorf("%v %v: %q", rows, err, warned.String())
	}
}

// What the registry says arrives as it was, but for what its hosts alone may know.
func TestSay(t *testing.T) {
	properties := map[string]string{"fs.s3a.secret.key": "hunter2", "mapreduce.lab.end": ";"}
	app := appdef.App{Name: "x", Config: map[string]string{"db.password": "hunter2", "db.host": "h", "muster.command": "train --key hunter2"}, Components: []appdef.Component{{
		Name: "worker", Config: map[string]string{
			"muster.command": "train --key hunter2", "muster.side.board": "board hunter2",
			"muster.resume.args": "--key hunter2", "muster.tensorflow.args": "--key hunter2", "port": "80",
		}, Settings: appdef.ComponentSettings{Role: appdef.RoleWorker, Command: "train --key hunter2", Env: map[string]string{
			"API_TOKEN": "hunter2", "MODE": "fast",
		}, Inputs: appdef.Inputs{Conf: properties}, Outputs: appdef.Outputs{Conf: properties}},
	}}}
	app.Addons = []appdef.Addon{{Name: "hunter2"}}
	def, err := appdef.Encode(app)
	if err != nil {
		t.Fatal(err)
	}
	st := consul.Status{
		ID: "d1", Broken: []error{errors.New("worker-9: no JSON")}, App: registry.AppRecord{Run: "3", Def: def, Token: "hunter2", User: "ann"}, Conductor: "worker-0", Live: 1,
		Directive: registry.Directive{Run: "3", Gen: 2, Verdict: &registry.Verdict{Run: "3"}},
		Members: []consul.MemberStatus{{
			Instance: registry.Instance{Component: "worker", Index: 1}, Live: true, Step: new(int64(7)),
			Member: registry.Member{Inc: "i", Peer: "h:1#k", Process: registry.Process{Machine: "hunter2", Pid: 9}},
		}},
	}
	st.Verdict = st.Directive.Verdict
	text, err := json.Marshal(Say(st))
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), def) {
		t.Fatalf("%v: %s", err, text)
	}
	var w word
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	got := w.status("d1")
	m := got.Members[0]
	if got.App.User != "ann" || got.App.DefID == "" || got.Verdict.Run != "3" || got.Conductor != "worker-0" || got.Live != 1 || m.Pid != 9 ||
		len(got.Broken) != 1 || got.Broken[0].Error() != "worker-9: no JSON" || m.Instance != st.Members[0].Instance || m.Peer != "h:1#k" || *m.Step != 7 || !m.Live {
		t.Errorf("%+v", got)
	}
	d, err := Describe(st.App)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := appdef.Decode(d.(definition).Definition)
	plain, _ := json.Marshal(shown)
	if err != nil || strings.Contains(string(plain), "hunter2") || shown.Config["db.host"] != "h" || shown.Components[0].Settings.Env["MODE"] != "fast" ||
		shown.Components[0].Settings.Role != appdef.RoleWorker || shown.Components[0].Config["port"] != "80" ||
		shown.Components[0].Settings.Inputs.Conf["mapreduce.lab.end"] != ";" || shown.Components[0].Settings.Outputs.Conf["mapreduce.lab.end"] != ";" {
		t.Errorf("%v: %s", err, plain)
	}
	if none, err := Describe(registry.AppRecord{}); err != nil || none.(definition).Definition != "" {
		t.Errorf("%v, %v", none, err)
	}
}

// Names that lead elsewhere stay within the app's path.
func TestPath(t *testing.T) {
	c, err := open("https://page.example.org", "t")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.path("apps", "d1", "states").String(), c.path("apps", "a/b", "states").String()}
	want := []string{"https://page.example.org/api/v1/apps/d1/states", "https://page.example.org/api/v1/apps/a%2Fb/states"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
