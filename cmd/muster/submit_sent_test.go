package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/submit"
)

// Marks lie where others may write: what they name as a registry is neither asked nor given a token.
func TestMarksOfAnotherRegistryAreLeftAlone(t *testing.T) {
	t.Setenv("CONSUL_HTTP_TOKEN", "secret")
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	there := "consul://" + strings.TrimPrefix(server.URL, "http://")
	mark := submit.Mark{App: "d1", Run: "r1", Registry: there, At: time.Now().Add(-2 * unheardOf)}
	r := &sent{flags: &submitFlags{}, streams: streams{err: t.Output()}, registry: "consul://127.0.0.1:1"}
	if r.over(t.Context(), mark) || asked.Load() != 0 {
		t.Errorf("another registry was asked %d times", asked.Load())
	}
	r.registry = there
	if r.over(t.Context(), mark); asked.Load() == 0 {
		t.Error("the registry of this submission was not asked")
	}
}
