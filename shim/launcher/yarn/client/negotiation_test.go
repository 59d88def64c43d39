package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// A ResourceManager that wants a ticket gets one, and is asked for what it was asked before; one that wants none gets none.
func TestTickets(t *testing.T) {
	noTicket := errors.New("there is no ticket: kinit makes one")
	for _, tt := range []struct {
		name         string
		wants, takes bool
		show         error
		user, refuse string // the result
	}{
		{"none is wanted", false, true, nil, "ada", ""},
		{"one is wanted", true, true, nil, "tina+x", ""},
		{"there is none", true, true, noTicket, "ada", "the cluster wants a ticket: there is no ticket: kinit makes one"},
		{"it is not taken", true, false, nil, "ada", "the cluster wants another login than ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.wants && (r.Header.Get("Authorization") != "Negotiate dGlja2V0" || !tt.takes) {
					w.Header().Add("WWW-Authenticate", "Negotiate")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				if tt.wants {
					http.SetCookie(w, &http.Cookie{Name: "hadoop.auth", Value: "u=tina%2Bx&p=tina@LAB&t=kerberos&e=1&s=", Quoted: true})
				}
				text, _ := io.ReadAll(r.Body)
				bodies = append(bodies, r.Method+string(text))
				if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/app/") && len(bodies) < 3 {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				_, _ = w.Write([]byte(`{"id":"application_1_1"}`))
			}))
			t.Cleanup(server.Close)
			shown := 0
			rest := &restClient{Addresses: []string{server.URL}, User: "ada", Negotiate: func(r *http.Request) error {
				shown++
				r.Header.Set("Authorization", "Negotiate dGlja2V0")
				return tt.show
			}}
			id, err := (&Service{restClient: rest, Definition: `{"name":"d1"}`}).Start(t.Context())
			if tt.refuse != "" {
				if !errors.Is(err, job.ErrRefused) || !strings.Contains(err.Error(), tt.refuse) || errors.Is(err, job.ErrUnreachable) {
					t.Errorf("got %v, want %s", err, tt.refuse)
				}
			} else if got := strings.Join(bodies, " "); err != nil || id != "application_1_1" || got != `GET GET POST{"name":"d1"} GET` {
				t.Errorf("got %q, %v, asked for %s", id, err, got)
			}
			if rest.User != tt.user {
				t.Errorf("got user %q, want %q", rest.User, tt.user)
			}
			if tt.refuse == "" && (shown == 0) == tt.wants || tt.refuse != "" && shown == 0 {
				t.Errorf("a ticket was shown %d times", shown)
			}
		})
	}
}
