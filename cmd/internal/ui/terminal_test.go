package ui

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"
)

// Text whose request was given up while the shell read nothing is typed never, and nothing is left of it.
func TestTypedIsGivenUp(t *testing.T) {
	one := &typed{next: make(chan string), over: make(chan struct{})}
	before := runtime.NumGoroutine()
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := one.enter(ctx, "rm -r .\n"); err == nil {
			t.Error("it was typed")
		}
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines are left", now-before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	entered := make(chan error, 1)
	go func() { entered <- one.enter(ctx, "echo ok\n") }()
	got := make([]byte, 8)
	if _, err := io.ReadFull(one, got); err != nil || string(got) != "echo ok\n" || <-entered != nil {
		t.Errorf("the shell reads %q: %v", got, err)
	}
	close(one.over)
	if _, err := one.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("at its end: %v", err)
	}
	if err := one.enter(ctx, "x"); err == nil {
		t.Error("typed into a shell that has ended")
	}
}
