package store

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A server that is asked with credentials sends the asker elsewhere: to another port, where somebody else listens.
func TestAttackRedirectTakesCredentials(t *testing.T) {
	var got http.Header
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer thief.Close()
	to := thief.URL
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			got = r.Header
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer server.Close()
	client := &http.Client{CheckRedirect: func(to *http.Request, via []*http.Request) error {
		DropCredentials(to, via)
		return nil
	}}
	ask := func() {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/?signature=secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Nomad-Token", "secret")
		r.Header.Set("Authorization", "secret")
		r.Header.Set("Range", "bytes=1-")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	ask()
	if got.Get("X-Nomad-Token")+got.Get("Authorization")+got.Get("Referer") != "" || got.Get("Range") != "bytes=1-" {
		t.Errorf("another origin got %v", got)
	}
	to = "/there"
	ask()
	if got.Get("X-Nomad-Token") != "secret" || got.Get("Authorization") != "secret" {
		t.Errorf("the same origin got %v", got)
	}
}
