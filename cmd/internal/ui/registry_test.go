package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// Who may ask a page in place of its registry, and what for. Its registry does not answer.
func TestWhoAsksInPlaceOfARegistry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	reader, readLine, _ := NewToken("ann", false)
	actor, actLine, err := NewToken("bob", true)
	if err == nil {
		err = os.WriteFile(path, []byte(readLine+"\n"+actLine+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := registry.ParseAddress("unix:" + filepath.Join(t.TempDir(), "r.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{base: "https://muster.test", host: "muster.test", Access: Access{Tokens: TokenFile{Path: path}}}
	s.Lookup = func(string) (apps.Lookup, error) {
		return apps.Lookup{State: "/nonexistent", Address: nobody, Named: true}, nil
	}
	h := s.handler()
	const act = "/api/v1/apps/d1/instances/worker-0/agent/v1/"
	for _, tt := range []struct {
		who, method, path, body string
		code                    int
		says                    string
	}{
		{"", "GET", "/api/v1/registry", "", 401, ""},
		{reader, "GET", "/api/v1/registry", "", 200, `"user":"ann","act":false`},
		{actor, "GET", "/api/v1/registry", "", 200, `"user":"bob","act":true`},
		{reader, "GET", "/api/v1/apps/..%2fd1/registry", "", 400, `"code":64`},
		{reader, "POST", "/api/v1/apps/d1/asks", `{"kind": "stop"}`, 403, `ann may look at apps, and not act on them","code":77`},
		{actor, "POST", "/api/v1/apps/d1/asks", `{"kind": "gone"}`, 400, "want stop, flex or save"},
		{actor, "POST", "/api/v1/apps/d1/asks", `{"kind": "stop", "id": "../../d2"}`, 400, "want an id and a run of letters"},
		{actor, "POST", "/api/v1/apps/d1/asks", `{"kind": "stop", "whose": "x"}`, 400, "unknown field"},
		{actor, "POST", "/api/v1/apps/d1/asks", `[]`, 400, "body"},
		{reader, "POST", act + "signal", `{"signal": "KILL"}`, 403, "ann may look at apps"},
		{reader, "POST", act + "exec", `{"argv": ["true"]}`, 403, "ann may look at apps"},
		{actor, "POST", act + "stop", `{}`, 400, "want signal, hold, command, exec"},
		{actor, "POST", act + "adopt", `{}`, 400, "want signal, hold, command, exec"},
		{reader, "POST", act + "logs/stdout", "", 405, ""},
		{reader, "GET", act + "state", "", 405, ""},
		{reader, "GET", "/api/v1/apps/d1/instances/nobody/agent/v1/samples", "", 400, "nobody"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "https://muster.test"+tt.path, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		if tt.who != "" {
			r.Header.Set("Authorization", "Bearer "+tt.who)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s %s %s: %d %s, want %d %s", tt.method, tt.path, tt.body, w.Code, w.Body, tt.code, tt.says)
		}
	}
	// A browser acts from the page itself, and sends what proves it also from a stranger's page.
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://muster.test"+act+"signal", strings.NewReader(`{"signal": "KILL"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Cookie", s.cookie(sessionCookie)+"="+actor)
	r.Header.Set("Origin", "https://evil.test")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 403 || !strings.Contains(w.Body.String(), "only this server's own page") {
		t.Errorf("a stranger's page: %d %s", w.Code, w.Body)
	}
}

// A request is its user's, whoever it says it is of.
func TestInNameOf(t *testing.T) {
	for _, tt := range []struct {
		ask  registry.Ask
		want string
	}{
		{registry.Ask{Kind: registry.AskStop, By: "root", Args: map[string]string{"who": "root", "grace": "3"}}, "stop map[grace:3 who:bob]"},
		{registry.Ask{Kind: registry.AskStop}, "stop map[who:bob]"},
		{registry.Ask{Kind: registry.AskFlex, By: "root", Gen: 9, Args: map[string]string{"worker": "3"}}, "bob map[worker:3]"},
		{registry.Ask{Kind: registry.AskSave, By: "root"}, "bob map[]"},
		{registry.Ask{Kind: registry.AskGone}, "64"},
		{registry.Ask{Kind: registry.AskSave, ID: strings.Repeat("a", 129)}, "64"},
		{registry.Ask{Kind: registry.AskSave, Run: "a/b"}, "64"},
	} {
		err := inNameOf(&tt.ask, "bob")
		got := fmt.Sprint(tt.ask.By, " ", tt.ask.Args)
		if err != nil {
			got = fmt.Sprint(exit.CodeOf(err))
		}
		if got != tt.want || tt.ask.Gen != 0 {
			t.Errorf("%+v: %s, want %s", tt.ask, got, tt.want)
		}
	}
}

// The list of all apps says how long each has run, for verbs with --ui as for others. A feed leaves that out of those
// that run: its page counts on, and would else be told of each second.
func TestTookOfWhatRuns(t *testing.T) {
	address := addBoards(t, "the run's token")
	s := &Server{Lookup: func(string) (apps.Lookup, error) {
		return apps.Lookup{State: apps.NoState, Address: address, Named: true, Warn: io.Discard}, nil
	}}
	w := httptest.NewRecorder()
	s.apps(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/apps", nil))
	fed, err := s.look(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		text string
		told bool
	}{"an answer": {w.Body.String(), true}, "a feed": {string(newsOf(fed).text), false}} {
		var all apps.Listing
		if err := json.Unmarshal([]byte(tt.text), &all); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all.Apps, func(r apps.Row) bool { return r.App == "d1" })
		if i < 0 || !all.Apps[i].Running() || (all.Apps[i].Seconds != nil && *all.Apps[i].Seconds >= 3600) != tt.told {
			t.Errorf("%s: %s", what, tt.text)
		}
	}
}

// A page without a registry is nobody's in place of one.
func TestOwnPageAnswersNoVerbs(t *testing.T) {
	base, _, links := serve(t)
	mine := browser(t)
	if code, _, _ := get(t, mine, <-links, ""); code != 303 {
		t.Fatalf("the link: %d", code)
	}
	if code, text, _ := get(t, mine, base+"/api/v1/apps/d1/registry", ""); code != 400 || !strings.Contains(text, "--ui is for the page of a registry") {
		t.Errorf("%d %s", code, text)
	}
}

// A verb that is one too many has no terminal to close, and may try again.
func TestOneActTooMany(t *testing.T) {
	s := &Server{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://muster.test/", nil)
	r.SetPathValue("act", "signal")
	r.Header.Set("Content-Type", "application/json")
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{Name: "bob", Act: true}))
	if err := s.mayBegin(r, mostTerminals); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	refuseVerb(w, s.mayBegin(r, mostTerminals+1))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "try again") || !strings.Contains(w.Body.String(), `"code":69`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
