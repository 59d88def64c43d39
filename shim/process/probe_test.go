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

// A page that answers, with an error too, is heard once; one that answers no more is told of, with what the network says.
func TestEar(t *testing.T) {
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
	e := earOf("127.0.0.1", port)
	e.every = time.Millisecond
	e.deaf = func(answered bool, _ time.Duration) bool { return answered && mute.Load() }
	heard := 0
	over := make(chan error, 1)
	go func() { over <- e.hear(t.Context(), func() { heard++ }) }()
	for range 5 {
		<-asked
	}
	mute.Store(true)
	select {
	case err := <-over:
		if err == nil || !strings.Contains(err.Error(), "does not answer HTTP: ") || heard != 1 {
			t.Errorf("heard %d times, then %v", heard, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a mute page is not told of")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.hear(ctx, func() { t.Error("heard after the end") }); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
