package consul

import (
	"errors"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

func TestContact(t *testing.T) {
	var said []registry.Event
	c := newContact(func(e registry.Event) { said = append(said, e) })
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	away := errors.New("away")
	c.answered(renewing, at)
	c.failed(renewing, away)
	c.failed(watching, away) // said already
	c.answered(renewing, at.Add(time.Minute))
	if len(said) != 1 {
		t.Fatalf("said %+v, want that it is away, once", said)
	}
	if u, ok := said[0].(registry.Unreachable); !ok || !u.Since.Equal(at) || !errors.Is(u.Err, away) {
		t.Errorf("said %+v", said[0])
	}
	c.answered(watching, at.Add(time.Minute))
	c.answered(watching, at.Add(2*time.Minute))
	if len(said) != 2 {
		t.Fatalf("said %+v, want that it is back, once", said)
	}
	if _, ok := said[1].(registry.Reachable); !ok {
		t.Errorf("said %+v", said[1])
	}
}
