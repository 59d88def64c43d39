package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// script is a store whose opens go as a test says, one after another.
type script struct {
	store.Store
	text  []byte
	opens []func(ctx context.Context, at store.Position) (io.Reader, error)

	mu sync.Mutex
	at []store.Position
}

func (s *script) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	s.mu.Lock()
	n := len(s.at)
	s.at = append(s.at, at)
	s.mu.Unlock()
	r, err := s.opens[min(n, len(s.opens)-1)](ctx, at)
	if err != nil {
		return nil, err
	}
	return &store.Content{ReadCloser: io.NopCloser(r), Info: store.Info{Path: path, Size: int64(len(s.text)), Validator: "v1"}, Offset: at.Offset}, nil
}

func (s *script) stores() store.Set {
	return store.Set{"script": func(context.Context, string) (store.Store, string, error) { return s, "/x", nil }}
}

// silent gives nothing until its context ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

// trickle gives a piece a second.
type trickle struct {
	text  []byte
	piece int
}

func (r *trickle) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Second)
	n := copy(p, r.text[:min(r.piece, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}

func TestAStallIsGivenUpAndTriedAgain(t *testing.T) {
	cache := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &script{text: noise(1000, 1)}
		s.opens = []func(context.Context, store.Position) (io.Reader, error){
			func(ctx context.Context, _ store.Position) (io.Reader, error) {
				return io.MultiReader(bytes.NewReader(s.text[:400]), silent{ctx}), nil
			},
			func(_ context.Context, at store.Position) (io.Reader, error) {
				return bytes.NewReader(s.text[at.Offset:]), nil
			},
		}
		begun := time.Now()
		f, err := Fetch(t.Context(), Request{URL: "script:x", CacheDir: cache, Stores: s.stores()})
		must(t, err)
		checkFile(t, f, s.text)
		must(t, f.Close())
		if took := time.Since(begun); took < stall || took > stall+time.Second {
			t.Errorf("took %s, want a stall and a short wait", took)
		}
		if len(s.at) != 2 || s.at[1] != (store.Position{Offset: 400, Validator: "v1"}) {
			t.Errorf("opened at %v, want the rest of v1 the second time", s.at)
		}
	})
}

// mute answers no Stat.
type mute struct{ *script }

func (m mute) Stat(ctx context.Context, _ string) (store.Info, error) {
	<-ctx.Done()
	return store.Info{}, context.Cause(ctx)
}

// A server that says nothing of a file that is in the cache is asked for the file itself after a stall.
func TestAStalledQuestionIsGivenUp(t *testing.T) {
	cache := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &script{text: noise(1000, 1), opens: []func(context.Context, store.Position) (io.Reader, error){
			func(_ context.Context, at store.Position) (io.Reader, error) {
				return bytes.NewReader(noise(1000, 1)[at.Offset:]), nil
			},
		}}
		stores := store.Set{"script": func(context.Context, string) (store.Store, string, error) { return mute{s}, "/x", nil }}
		for range 2 {
			begun := time.Now()
			f, err := Fetch(t.Context(), Request{URL: "script:x", CacheDir: cache, Stores: stores})
			must(t, err)
			checkFile(t, f, s.text)
			must(t, f.Close())
			if took := time.Since(begun); took > stall+time.Second {
				t.Errorf("took %s, want no more than a stall", took)
			}
		}
		if len(s.at) != 2 {
			t.Errorf("opened %d times, want 2", len(s.at))
		}
	})
}

// A slow server is no stalled one.
func TestASlowServerIsWaitedForAndProgressTold(t *testing.T) {
	cache := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &script{text: noise(150<<10, 1)}
		s.opens = []func(context.Context, store.Position) (io.Reader, error){
			func(context.Context, store.Position) (io.Reader, error) { return &trickle{s.text, 1 << 10}, nil },
		}
		var shown bytes.Buffer
		f, err := Fetch(t.Context(), Request{URL: "script:x/app.zip?token=secret", CacheDir: cache, Stores: s.stores(), Progress: &shown})
		must(t, err)
		must(t, f.Close())
		lines := strings.Split(strings.TrimSpace(shown.String()), "\n")
		if len(s.at) != 1 || len(lines) < 15 || len(lines) > 17 {
			t.Fatalf("opened %d times, %d lines: %q, want a line each 10 s", len(s.at), len(lines), lines)
		}
		if got, want := lines[len(lines)-1], "fetch app.zip: 0.1 of 0.1 MiB, 100 %, 0.0 MiB/s"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if strings.Contains(shown.String(), "secret") {
			t.Errorf("the query shows: %q", shown.String())
		}
	})
}

func TestTriesAreBoundedAndFurtherApart(t *testing.T) {
	cache := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		s := &script{text: []byte("x")}
		s.opens = []func(context.Context, store.Position) (io.Reader, error){func(context.Context, store.Position) (io.Reader, error) {
			at = append(at, time.Since(begun))
			return nil, fmt.Errorf("%w: no route", store.ErrUnreachable)
		}}
		var shown bytes.Buffer
		_, err := Fetch(t.Context(), Request{URL: "script:x", CacheDir: cache, Stores: s.stores(), Progress: &shown})
		if !errors.Is(err, store.ErrUnreachable) || len(at) != store.DefaultRetries+1 {
			t.Fatalf("got %v after %d tries, want %d", err, len(at), store.DefaultRetries+1)
		}
		for i := 1; i < len(at); i++ {
			most := store.DefaultBackoff.First << i
			if pause := at[i] - at[i-1]; pause < min(most, store.DefaultBackoff.Longest)/2 || pause > min(most, store.DefaultBackoff.Longest) {
				t.Errorf("before try %d: got a pause of %s, want %s to %s", i+1, pause, min(most, store.DefaultBackoff.Longest)/2, min(most, store.DefaultBackoff.Longest))
			}
		}
		if got := strings.Count(shown.String(), "no route: again in"); got != store.DefaultRetries {
			t.Errorf("told %d times, want %d: %q", got, store.DefaultRetries, shown.String())
		}
	})
}

func TestBackoffDoesWhatTheServerAsks(t *testing.T) {
	for range 100 {
		for failed := range 80 {
			if got := backoff(failed, nil); got < store.DefaultBackoff.First/2 || got > store.DefaultBackoff.Longest {
				t.Fatalf("after %d: got %s", failed, got)
			}
		}
	}
	if got := backoff(0, &store.StatusError{Code: 503, After: time.Minute}); got != time.Minute {
		t.Errorf("got %s, want a minute", got)
	}
}

func TestALineOnATerminal(t *testing.T) {
	var shown bytes.Buffer
	d := newDisplay(&shown, []Request{{URL: "https://u:secret@h/a\x1bb.zip?x"}})
	d.terminal = true
	c := d.add()
	c.total(3 * mib)
	c.had(mib)
	_, _ = c.Write(make([]byte, mib/2))
	d.finish()
	if got, want := shown.String(), "\rfetch a?b.zip: 1.5 of 3.0 MiB, 50 %\x1b[K\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFileThatGrowsIsNotTaken(t *testing.T) {
	cache := t.TempDir()
	s := &script{text: []byte("text")}
	s.opens = []func(context.Context, store.Position) (io.Reader, error){
		func(context.Context, store.Position) (io.Reader, error) {
			return strings.NewReader("text and more"), nil
		},
	}
	_, err := Fetch(t.Context(), Request{URL: "script:x", CacheDir: cache, Stores: s.stores()})
	if err == nil || !strings.Contains(err.Error(), "grew beyond 4 bytes") || len(s.at) != 1 {
		t.Errorf("got %v, opened %d times, want it refused once", err, len(s.at))
	}
	if left := append(contentsOf(t, cache, "sha256"), contentsOf(t, cache, "partial")...); len(left) != 0 {
		t.Errorf("left: %v, want nothing", left)
	}
}
