package publisher

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a source whose reads take some time; each view has the number of its read.
type slow struct {
	mu    sync.Mutex
	reads int
	takes time.Duration
	err   error
}

func (s *slow) View(ctx context.Context) (View, error) {
	s.mu.Lock()
	s.reads++
	v, err := View{App: appView{Name: string(rune('0' + s.reads))}}, s.err
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
		return v, err
	case <-ctx.Done():
		return View{}, ctx.Err()
	}
}

func (s *slow) Stop(context.Context, string) error { return nil }

func (s *slow) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// Scripts of a large gang poll at once and in turn: one read a second.
func TestOneReadASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 100 * time.Millisecond}
		v := &views{source: s}
		var all sync.WaitGroup
		for i := range 1000 { // 100 a second, for 10 seconds
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				if _, err := v.get(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s.count() != 10 {
			t.Errorf("got %d reads in 10 s, want 10", s.count())
		}
	})
}

// Who asks after a second gets what is true then, not what was read before.
func TestViewsAreFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &views{source: &slow{takes: 100 * time.Millisecond}}
		for _, want := range []string{"1", "1", "2", "2"} {
			got, err := v.get(t.Context())
			if err != nil || got.App.Name != want {
				t.Errorf("got view %q (%v), want %q", got.App.Name, err, want)
			}
			time.Sleep(450 * time.Millisecond)
		}
	})
}

// The one who asked first goes; the others get their answer.
func TestFirstAskerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 5 * time.Second}
		v := &views{source: s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := v.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want its own deadline", err)
			}
		})
		both.Go(func() {
			time.Sleep(500 * time.Millisecond)
			if got, err := v.get(t.Context()); err != nil || got.App.Name != "1" {
				t.Errorf("got %q, %v, want the first view", got.App.Name, err)
			}
		})
		both.Wait()
		if s.count() != 1 {
			t.Errorf("got %d reads, want 1", s.count())
		}
	})
}

// While the registry cannot be read the last view answers, as long as a gang goes on without it; errors are not asked for faster than views.
func TestRegistryAwayForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		v := &views{source: s}
		if _, err := v.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.err = errors.New("no leader")
		time.Sleep(stale - time.Second)
		if got, err := v.get(t.Context()); err != nil || got.App.Name != "1" {
			t.Errorf("got %q, %v, want the last view", got.App.Name, err)
		}
		time.Sleep(1100 * time.Millisecond)
		before := s.count()
		for range 5 {
			if _, err := v.get(t.Context()); !errors.Is(err, s.err) {
				t.Errorf("got %v, want %v", err, s.err)
			}
		}
		if s.count() != before+1 {
			t.Errorf("got %d reads, want 1", s.count()-before)
		}
		s.err = nil
		time.Sleep(fresh)
		if _, err := v.get(t.Context()); err != nil {
			t.Errorf("the registry is back: %v", err)
		}
	})
}

// A registry that hangs holds nobody up who could be answered.
func TestRegistryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		v := &views{source: s}
		if _, err := v.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.takes = time.Hour
		time.Sleep(time.Minute)
		for range 20 {
			start := time.Now()
			if got, err := v.get(t.Context()); err != nil || got.App.Name != "1" || time.Since(start) > fresh {
				t.Errorf("got %q, %v after %s, want the last view within %s", got.App.Name, err, time.Since(start), fresh)
			}
		}
		time.Sleep(patience) // the read ends
	})
}

// A read that hangs ends.
func TestReadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &views{source: &slow{takes: time.Hour}}
		start := time.Now()
		if _, err := v.get(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != patience {
			t.Errorf("got %v after %s, want an end after %s", err, time.Since(start), patience)
		}
	})
}
