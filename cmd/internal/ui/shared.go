package ui

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// shareFor is how old a shared answer may be.
const shareFor = time.Second / 2

// shared has callers who ask for the same share one look at it: that under way, or one that is no older than shareFor.
// So a crowd of them costs the registry and the agents what one of them does.
type shared[T any] struct {
	mu  sync.Mutex
	all map[string]*sharedLook[T]
}

type sharedLook[T any] struct {
	cancel  context.CancelFunc
	done    chan struct{} // closed when value and err are there
	value   T
	err     error
	waiting int
}

// get answers what look says of key, to be only read: others have it, too. A look that nobody waits for is given up.
func (s *shared[T]) get(ctx context.Context, key string, look func(context.Context) (T, error)) (value T, err error) {
	s.mu.Lock()
	one := s.all[key]
	if one == nil {
		one = s.begin(ctx, key, look)
	}
	one.waiting++
	s.mu.Unlock()
	defer s.leave(key, one)
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// begin is called with the mutex held.
func (s *shared[T]) begin(
	ctx context.Context, key string, look func(context.Context) (T, error),
) *sharedLook[T] {
	one := &sharedLook[T]{done: make(chan struct{})}
	if s.all == nil {
		s.all = map[string]*sharedLook[T]{}
	}
	s.all[key] = one
	ctx, one.cancel = context.WithCancel(context.WithoutCancel(ctx)) // the caller may leave before the others
	go func() {
		one.value, one.err = survive(ctx, key, look)
		close(one.done)
		one.cancel()
		time.AfterFunc(shareFor, func() { s.forget(key, one) })
	}()
	return one
}

// survive has a look that panics fail: it runs outside of any request, and would end the whole server.
func survive[T any](
	ctx context.Context, key string, look func(context.Context) (T, error),
) (value T, err error) {
	defer func() {
		if why := recover(); why != nil {
			slog.Error("a look has panicked", "key", key, "err", why, "stack", string(debug.Stack()))
			err = fmt.Errorf("look at %s: a fault of muster itself, which the log of the page's server has", key)
		}
	}()
	return look(ctx)
}

// leave gives up a look under the same lock that saw nobody wait for it: a newcomer must not join one that ends.
func (s *shared[T]) leave(key string, one *sharedLook[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.waiting--
	select {
	case <-one.done:
		return
	default:
	}
	if one.waiting > 0 {
		return
	}
	if s.all[key] == one {
		delete(s.all, key)
	}
	one.cancel()
}

func (s *shared[T]) forget(key string, one *sharedLook[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == one {
		delete(s.all, key)
	}
}

// renew has the next caller look anew.
func (s *shared[T]) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}
