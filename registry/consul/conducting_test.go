package consul

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A conductor that rests because the registry has refused the same again and again steps down at once when its agent
// leaves: another may conduct where it could not.
func TestStepDownDuringARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := &refusal{what: []string{"directive: index 7"}}
		c := &conducting{
			gang:    &gang{Client: &Client{log: slog.New(slog.DiscardHandler)}, candidacy: candidacy{stepDown: make(chan struct{})}},
			refused: refusals{what: why.Error(), count: 9},
		}
		began := time.Now()
		time.AfterFunc(time.Second, func() { close(c.stepDown) })
		if err := c.recover(t.Context(), why); !errors.Is(err, errDone) {
			t.Errorf("got %v, want the lock released", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("stepped down after %s, want 1s", took)
		}
	})
}
