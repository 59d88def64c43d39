package openapp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/store"
)

func TestLocation(t *testing.T) {
	for _, tt := range []struct{ ref, url, local, name string }{
		{"dir/app.zip", "dir/app.zip", "dir/app.zip", "app"},
		{"file:///srv/app.tar.zst", "file:///srv/app.tar.zst", "/srv/app.tar.zst", "app"},
		{"FILE://localhost/srv/app", "FILE://localhost/srv/app", "/srv/app", "app"},
		{"https://h/a/app-1.0.0.tzst?v=a.b", "https://h/a/app-1.0.0.tzst?v=a.b", "https://h/a/app-1.0.0.tzst?v=a.b", "app-1.0.0"},
	} {
		at, err := ParseLocation(tt.ref)
		if err != nil || at.URL != tt.url || at.name() != tt.name {
			t.Errorf("%s: got %+v, name %s, %v", tt.ref, at, at.name(), err)
		}
		if path, err := at.local(t.Context()); err != nil || path != tt.local {
			t.Errorf("%s: got %s, %v, want %s", tt.ref, path, err, tt.local)
		}
	}
}

func TestFetchCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{store.ErrScheme, exit.Usage},
		{store.ErrRedirect, exit.Forbidden},
		{store.ErrTLS, exit.Registry},
		{store.ErrNotFile, exit.Definition},
		{fs.ErrNotExist, exit.Definition},
		{&store.StatusError{Code: 404}, exit.Definition},
		{&store.StatusError{Code: 403}, exit.Forbidden},
		{&store.StatusError{Code: 503}, exit.Registry},
		{&store.StatusError{Code: 204}, exit.Registry},
		{errors.New("the disk"), 1},
	} {
		if got := FetchCode(fmt.Errorf("fetch: %w", tt.err)); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}

// A package that is being fetched when Ctrl-C comes is waited for no longer.
func TestCalledOffWhileItIsFetched(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	begun := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	a := Choices{}
	if _, _, err := a.Read(ctx, silent.URL+"/a.zip"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it broken off", err)
	}
}
