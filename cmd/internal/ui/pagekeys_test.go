package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/remote"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

// fill serves a registry with these keys in it. Keys below live/ are held by a session, as by a member.
func fill(t *testing.T, all map[string]any) registry.Address {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.sock")
	l, err := embedded.ListenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- embedded.Serve(ctx, embedded.Options{Listener: l}) }()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	t.Cleanup(func() {
		c.CloseIdleConnections()
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	put := func(path string, value any) []byte {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://registry/v1/"+path, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, answer.Status, said, err)
		}
		return said
	}
	var session struct{ ID string }
	text := put("session/create", map[string]any{"TTL": "600s", "Behavior": "delete", "LockDelay": "1ms", "NodeChecks": []string{}})
	if err := json.Unmarshal(text, &session); err != nil {
		t.Fatal(err)
	}
	for key, value := range all {
		if strings.Contains(key, "/live/") {
			key += "?acquire=" + session.ID
		}
		put("kv/muster/"+key, value)
	}
	return registry.SocketAddress(path)
}

// servePeer answers other hosts as the agent of an instance does that knows the run's token.
func servePeer(t *testing.T, token, app string, st status.State) (peer string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	id, err := status.NewPeerIdentity(token, app, st.Instance.Instance)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	h := status.PeerHandler(status.Source{State: func() status.State { return st }}, token)
	go func() { over <- status.ServePeers(ctx, l, id, h, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return registry.JoinPeer(l.Addr().String(), id.Key)
}

// addBoards fills a registry with d1, whose board the agent of worker-0 tells of, that of worker-1 the record alone; and
// with d2, which is over.
func addBoards(t *testing.T, token string) registry.Address {
	t.Helper()
	const board = "http://10.0.0.1:20002"
	ports := map[string]int{"side.board": 20002, "side.board.inner": 20003}
	m := registry.Member{
		Run: "r1", Inc: "i", Addr: "10.0.0.1", Phase: registry.PhaseReady, Ports: ports, Exports: map[string]string{"worker.board": board},
	}
	silent := m
	st := status.State{App: "d1", Run: "r1", Inc: "i"}
	st.Identity, st.Phase = status.Identity{Instance: "worker-0", Component: "worker"}, "running"
	st.Host, st.Ports, st.Exports = m.Addr, m.Ports, m.Exports
	m.Peer = servePeer(t, token, "d1", st)
	app := registry.AppRecord{
		Run: "r1", Token: token, Counts: map[string]int{"worker": 2}, Created: time.Now().Add(-time.Hour),
	}
	verdict := &registry.Verdict{Run: "r1", Outcome: registry.Succeeded}
	return fill(t, map[string]any{
		"d1/app": app, "d1/directive": registry.Directive{Run: "r1", Gen: 1, Act: registry.ActRun},
		"d1/members/worker/0": m, "d1/live/worker/0": "i", "d1/members/worker/1": silent, "d1/live/worker/1": "i",
		"d2/app": app, "d2/directive": registry.Directive{Run: "r1", Gen: 1, Act: registry.ActStop, Verdict: verdict},
		"d2/members/worker/0": silent,
	})
}

// Who may act gets the links of boards with their keys, by a verb with --ui and from the API; who may only look, and
// the feeds, which all share, get none.
func TestKeysOfPages(t *testing.T) {
	const token = "the run's token"
	address := addBoards(t, token)
	path := filepath.Join(t.TempDir(), "tokens")
	secrets, lines := map[bool]string{}, ""
	for name, act := range map[string]bool{"ann": false, "bob": true} {
		secret, line, err := NewToken(name, act)
		if err != nil {
			t.Fatal(err)
		}
		secrets[act], lines = secret, lines+line+"\n"
	}
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{Access: Access{Tokens: TokenFile{Path: path}}, Lookup: func(string) (apps.Lookup, error) {
		return apps.Lookup{State: apps.NoState, Address: address, Named: true, Warn: io.Discard}, nil
	}}
	page := httptest.NewUnstartedServer(nil)
	s.base, s.host = "http://"+page.Listener.Addr().String(), page.Listener.Addr().String()
	page.Config.Handler = s.handler()
	page.Start()
	defer page.Close()
	for act, secret := range secrets {
		for in, want := range linksOf(t, token) {
			if !act {
				want = "http://10.0.0.1:20002"
			}
			text := statusThrough(t, page.URL, secret, "d1")
			if !strings.Contains(text, "board       "+in+": "+want+"\n") {
				t.Errorf("status of who may act %t: %s: want %s in\n%s", act, in, want, text)
			}
			if text := answerTo(t, page.URL+"/api/v1/apps/d1", secret); !strings.Contains(text, `"worker.board":"`+want+`"`) {
				t.Errorf("the app to who may act %t: want %s in %s", act, want, text)
			}
		}
		for _, path := range []string{"apps/d2", "apps/d2/registry"} {
			if text := answerTo(t, page.URL+"/api/v1/"+path, secret); strings.Contains(text, "token=") || !strings.Contains(text, "worker.board") {
				t.Errorf("a run that is over has no pages: %s: %s", path, text)
			}
		}
	}
	if v, err := s.look(t.Context(), "d1"); err != nil || strings.Contains(string(newsOf(v).text), "token=") {
		t.Errorf("a feed: %v %s", err, newsOf(v).text)
	}
}

// linksOf are the links of d1's boards with their keys.
func linksOf(t *testing.T, token string) map[string]string {
	t.Helper()
	links := map[string]string{}
	for _, in := range []string{"worker-0", "worker-1"} {
		key, err := gate.Key(token, "d1", in, "board")
		if err != nil {
			t.Fatal(err)
		}
		links[in] = "http://10.0.0.1:20002/?token=" + key
	}
	return links
}

// statusThrough is what muster status prints that asks a page.
func statusThrough(t *testing.T, page, secret, app string) string {
	t.Helper()
	c, err := remote.Open(page, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	facts, err := apps.Lookup{State: apps.NoState, Page: c, Named: true, Warn: io.Discard}.App(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	facts.AskPeers(t.Context())
	if _, answered := facts.Peers["worker-0"]; !answered || facts.Registry.App.Token != "" {
		t.Errorf("agents that have answered: %v, the run's token: %q", facts.Peers, facts.Registry.App.Token)
	}
	v := view.Of(facts)
	v.ShowKeys(facts)
	var out strings.Builder
	if err := v.Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// answerTo is what the API answers to the holder of a token.
func answerTo(t *testing.T, url, secret string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", url, answer.Status, text, err)
	}
	return string(text)
}
