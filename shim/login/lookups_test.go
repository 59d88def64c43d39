package login

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/registry"
)

// A crowd of unknown keys costs the registry so much a second, and lets a known one through.
func TestUnknownKeysCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		l := newLookups(func(_ context.Context, key string) (string, error) {
			looks.Add(1)
			if key == "alice's" {
				return "alice", nil
			}
			return "", registry.ErrNoLogin
		})
		begun := time.Now()
		var all sync.WaitGroup
		for i := range mostConnections {
			all.Go(func() {
				for try := range mostTries {
					if _, err := l.admit(t.Context(), fmt.Sprint(i, try)); !errors.Is(err, registry.ErrNoLogin) {
						t.Errorf("an unknown key: %v", err)
					}
				}
			})
		}
		synctest.Wait()
		asked := time.Now()
		if who, err := l.admit(t.Context(), "alice's"); who != "alice" || err != nil {
			t.Errorf("a known key: %s, %v", who, err)
		}
		if took := time.Since(asked); took > patience/2 {
			t.Errorf("a known key was looked up after %s", took)
		}
		all.Wait()
		const most = lookupsAtOnce * int64(time.Second/refusalPause)
		if took := time.Since(begun); looks.Load() > most*int64(took/time.Second+1) {
			t.Errorf("%d looks in %s, want at most %d a second", looks.Load(), took, most)
		}
	})
}

// A key that is unknown is looked up once in a while, however often it is shown.
func TestUnknownKeyIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, known := 0, false
		l := newLookups(func(context.Context, string) (string, error) {
			looks++
			if known {
				return "bob", nil
			}
			return "", registry.ErrNoLogin
		})
		begun := time.Now()
		for time.Since(begun) < 2*refusedFor {
			if _, err := l.admit(t.Context(), "bob's"); !errors.Is(err, registry.ErrNoLogin) {
				t.Fatal(err)
			}
		}
		if looks > 3 {
			t.Errorf("%d looks in %s", looks, time.Since(begun))
		}
		known = true
		time.Sleep(refusedFor)
		if who, err := l.admit(t.Context(), "bob's"); who != "bob" || err != nil {
			t.Errorf("permitted meanwhile: %s, %v", who, err)
		}
		for i := range 2 * mostUnknown {
			l.note(fmt.Sprint(i))
		}
		if len(l.unknown) > mostUnknown {
			t.Errorf("%d keys are kept", len(l.unknown))
		}
	})
}
