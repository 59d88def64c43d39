package process

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A page that answers, with an error too, is reported once; one that answers no more fails, with what the network says.
func TestProbe(t *testing.T) {
	var mute atomic.Bool
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		if mute.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	_, text, _ := net.SplitHostPort(server.Listener.Addr().String())
	port, _ := strconv.Atoi(text)
	p := probeOf("127.0.0.1", port)
	p.every = time.Millisecond
	p.unresponsive = func(answered bool, _ time.Duration) bool { return answered && mute.Load() }
	answers := 0
	over := make(chan error, 1)
	go func() { over <- p.watch(t.Context(), func() { answers++ }) }()
	for range 5 {
		<-asked
	}
	mute.Store(true)
	select {
	case err := <-over:
		if err == nil || !strings.Contains(err.Error(), "does not answer HTTP: ") || answers != 1 {
			t.Errorf("%d first answers, then %v", answers, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a page that does not answer is not noticed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.watch(ctx, func() { t.Error("an answer after the end") }); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
