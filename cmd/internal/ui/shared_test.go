package ui

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A crowd that asks for the same has one look at it, and one of them who leaves costs the others nothing.
func TestShared(t *testing.T) {
	var s shared[int]
	var looks atomic.Int64
	const crowd = 50
	came, begin := make(chan struct{}, crowd), make(chan struct{})
	look := func(ctx context.Context) (int, error) {
		looks.Add(1)
		came <- struct{}{}
		select {
		case <-begin:
			return 7, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	first, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.get(first, "a", look)
		left <- err
	}()
	<-came
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			if n, err := s.get(t.Context(), "a", look); n != 7 || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
		})
	}
	until(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.all["a"].waiting == crowd+1 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who has left: %v", err)
	}
	close(begin)
	all.Wait()
	if looks.Load() != 1 {
		t.Errorf("%d looks for one crowd", looks.Load())
	}
	until(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.all) == 0 }) // it is kept for a moment only
}

// A look that panics fails, of a feed as well: it would end the server. What it panicked with is for the log alone.
func TestLookThatPanics(t *testing.T) {
	f := feeds{look: func(context.Context, string) (any, error) { panic("hunter2") }}
	if _, err := f.see(t.Context(), "d1"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// A look whose callers have all left is given up, and the next one looks again.
func TestSharedIsGivenUp(t *testing.T) {
	var s shared[int]
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	began := make(chan struct{})
	go func() {
		<-began
		leave()
	}()
	_, err := s.get(ctx, "a", func(ctx context.Context) (int, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return 0, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the look goes on for nobody")
	}
	if n, err := s.get(t.Context(), "a", func(context.Context) (int, error) { return 3, nil }); n != 3 || err != nil {
		t.Errorf("the next: %d, %v", n, err)
	}
}

// until waits for what must come to be.
func until(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it does not come to be")
		}
	}
}
