package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/submit"
)

// Marks lie where others may write: what they name as a registry is neither asked nor given a token. The others' apps are asked for
// once each, our own not at all, and a registry that does not answer is not asked again.
func TestWhoIsAskedForMarks(t *testing.T) {
	t.Setenv("CONSUL_HTTP_TOKEN", "secret")
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	there, err := registry.ParseConsulAddress(server.URL, false)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := registry.DefaultAddress()
	for _, tt := range []struct {
		name     string
		registry registry.Address
		before   error
		want     bool
	}{
		{"another registry", elsewhere, registry.ErrNoApp, false},
		{"ours", there, registry.ErrNoApp, true},
		{"ours, which does not answer", there, os.ErrDeadlineExceeded, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mu.Lock()
			asked = nil
			mu.Unlock()
			store, err := submit.Open(t.Context(), t.TempDir(), fetch.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []submit.Mark{{App: "d1", Run: "r1"}, {App: "d2", Run: "r1"}, {App: "d2", Run: "r2"}} {
				m.Registry, m.At = there.String(), time.Now().Add(-2*unheardOf)
				if err := store.Hold(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			r := &sent{flags: &submitFlags{}, streams: console.Streams{Err: t.Output()}, app: "d1", run: "r2", registry: tt.registry, cargo: &cargo{store: store}}
			r.before.err = tt.before
			known := r.standings(t.Context(), nil)
			if len(known) > 1 {
				t.Errorf("known are %v without a mark", known)
			}
			r.tidy(t.Context(), func(line string) { t.Log(line) })
			mu.Lock()
			defer mu.Unlock()
			if (len(asked) > 0) != tt.want {
				t.Errorf("asked were %v, want any: %v", asked, tt.want)
			}
			left, err := store.Marks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			apps := []string{}
			for _, m := range left {
				apps = append(apps, m.App)
			}
			slices.Sort(apps)
			want := []string{"d1", "d2", "d2"}
			if tt.want { // of our own app it is known that nobody has heard of it
				want = want[1:]
			}
			if !slices.Equal(apps, want) {
				t.Errorf("marks left are of %v, want %v", apps, want)
			}
		})
	}
}

func TestRunsThatAreOver(t *testing.T) {
	old := time.Now().Add(-2 * unheardOf)
	status := func(run string, live int, verdict *registry.Verdict) appStanding {
		s := appStanding{st: consul.Status{Live: live, Verdict: verdict}}
		s.st.App.Run, s.st.App.Created = run, time.Now()
		return s
	}
	ended := func(ago time.Duration) *registry.Verdict { return &registry.Verdict{At: time.Now().Add(-ago)} }
	for _, tt := range []struct {
		name string
		at   appStanding
		old  bool
		want bool
	}{
		{"unheard of", appStanding{err: registry.ErrNoApp}, false, false},
		{"unheard of for long", appStanding{err: registry.ErrNoApp}, true, true},
		{"no answer", appStanding{err: os.ErrDeadlineExceeded}, true, false},
		{"in a queue, after an earlier run", status("r0", 0, ended(time.Hour)), false, false},
		{"in a queue, while a later one runs", status("r2", 3, nil), false, false},
		{"never begun", status("r0", 0, ended(time.Hour)), true, true},
		{"runs", status("r1", 3, nil), true, false},
		{"interrupted", status("r1", 0, nil), false, false},
		{"interrupted, and never went on", status("r1-2", 0, nil), true, true},
		{"ended just now", status("r1", 0, ended(time.Second)), true, false},
		{"ended", status("r1", 0, ended(2*restedFor)), false, true},
		{"ended, as the launcher's third", status("r1-2", 0, ended(2*restedFor)), false, true},
		{"ended, and an agent is left", status("r1", 1, ended(2*restedFor)), false, false},
		{"another's that begins alike", status("r1-b", 0, ended(2*restedFor)), false, false},
	} {
		m := submit.Mark{App: "d1", Run: "r1", At: time.Now()}
		if tt.old {
			m.At = old
		}
		if got := tt.at.over(m); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A run's verdict is asked for also when the app has gone on to another run, and of a job that was started anew it is the newest one's.
func TestRunsThatOthersFollowed(t *testing.T) {
	x, _, _ := waiting(t, "yarn", true)
	var dialer net.Dialer
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, _ := x.registry.Socket()
		return dialer.DialContext(ctx, "unix", path)
	}}}
	defer c.CloseIdleConnections()
	set := func(key string, v registry.Verdict) {
		v.Version = 1
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://registry/v1/kv/muster/d1/"+key, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
	}
	old := time.Now().Add(-2 * restedFor)
	done := registry.Verdict{Outcome: registry.Succeeded, At: old}
	held := registry.Verdict{Outcome: registry.Failed, Class: registry.ClassHost, At: old}
	if exit.Of(held, "") != exit.Held {
		t.Fatalf("got %d for what asks for another try", exit.Of(held, ""))
	}
	set("app", done) // there is one; nobody reads it here
	set("verdict/r1", done)
	set("verdict/r2", registry.Verdict{Outcome: registry.Succeeded, At: time.Now()})
	set("verdict/r3", held)
	set("verdict/r4-0", held)
	set("verdict/r4-1", done)
	for _, tt := range []struct {
		run, launcher, now string
		want               bool
	}{
		{"r1", "yarn", "r9", true},
		{"r1", "yarn", "r1", false}, // it is the app's own standing that tells
		{"r2", "yarn", "r9", false},
		{"r3", "yarn", "r9", true},
		{"r3", "slurm", "r9", false},
		{"r4", "k8s", "r9", true},
		{"r5", "yarn", "r9", false},
	} {
		var at appStanding
		at.st.App.Run = tt.now
		m := submit.Mark{App: "d1", Run: tt.run, Launcher: tt.launcher, At: time.Now()}
		if got := x.rested(t.Context(), at, m); got != tt.want {
			t.Errorf("%s by %s, while %s is the app's: got %v, want %v", tt.run, tt.launcher, tt.now, got, tt.want)
		}
	}
	if x.rested(t.Context(), appStanding{err: os.ErrDeadlineExceeded}, submit.Mark{App: "d1", Run: "r1"}) {
		t.Error("over, of a registry that does not answer")
	}
}

func TestRunsOfAJob(t *testing.T) {
	for run, want := range map[string]bool{"a": true, "a-0": true, "a-12": true, "a-": false, "a-b": false, "a-1-1": false, "ab": false, "b": false} {
		if got := runOf(run, "a"); got != want {
			t.Errorf("%s of a: got %v, want %v", run, got, want)
		}
	}
}

// Names have letters that no app id has; some have no other.
func TestAppIDs(t *testing.T) {
	for name, want := range map[string]string{"ads": "ads", "训练": "app", "训练-2": "2", "a b": "a-b", "": "app", "~_.": "app"} {
		if got := appdef.NameOf(name, ""); got != want || !appdef.ValidName(got) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
