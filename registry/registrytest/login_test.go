package registrytest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
)

// TestLogins: a key may log in to the run that it was permitted for, until that is taken back or its time is over.
func TestLogins(t *testing.T) {
	l, err := embedded.ListenLoopback(t.Context(), "127.0.0.1:0")
	must(t, err)
	a := newApp(t, serveEmbedded(t, l, "consul://"+l.Addr().String()))
	c := a.assemble(t, 1)[0].client
	const key = "ssh-ed25519 AAAA"
	revoke, err := c.Permit(soon(t), a.facts.App, registry.Login{Run: "r1", Key: key, By: "alice"})
	must(t, err)
	if got, err := c.Permitted(soon(t), a.facts.App, "r1", key); err != nil || got.By != "alice" {
		t.Errorf("got %+v, %v", got, err)
	}
	refused := func(run, key string) {
		t.Helper()
		if got, err := c.Permitted(soon(t), a.facts.App, run, key); !errors.Is(err, registry.ErrNoLogin) {
			t.Errorf("%s, %s: got %+v, %v", run, key, got, err)
		}
	}
	refused("r2", key)
	refused("r1", key+"B")
	revoke()
	refused("r1", key)
	for until, want := range map[time.Duration]error{time.Hour: nil, -time.Second: registry.ErrNoLogin} {
		_, err := c.Permit(soon(t), a.facts.App, registry.Login{Run: "r1", Key: key, Until: time.Now().Add(until)})
		must(t, err)
		if _, err := c.Permitted(soon(t), a.facts.App, "r1", key); !errors.Is(err, want) {
			t.Errorf("until %s from now: got %v, want %v", until, err, want)
		}
	}
	// Those whose time is over go when another is made, and there is an end to how many there are.
	permit := func(key string, until time.Duration) error {
		_, err := c.Permit(soon(t), a.facts.App, registry.Login{Run: "r1", Key: key, Until: time.Now().Add(until)})
		return err
	}
	must(t, permit(key, -time.Second))
	must(t, permit(key, time.Hour))
	if _, err := c.Permitted(soon(t), a.facts.App, "r1", key); err != nil {
		t.Errorf("one that was over, made again: %v", err)
	}
	must(t, permit(key, -time.Second))
	must(t, permit("another", time.Hour))
	if got, err := c.Permitted(soon(t), a.facts.App, "r2", key); !errors.Is(err, registry.ErrNoLogin) {
		t.Errorf("a login that is over: got %+v, %v", got, err)
	}
	for i := range 255 {
		must(t, permit(fmt.Sprint("key ", i), time.Hour))
	}
	if err := permit("one more", time.Hour); !errors.Is(err, registry.ErrTooManyLogins) || !strings.Contains(err.Error(), " has 256 ") {
		t.Errorf("one too many: got %v", err)
	}
}
