package registry_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

func TestTimesCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*registry.Times)
		want []string
	}{
		{"defaults", func(*registry.Times) {}, nil},
		{"longer mass", func(x *registry.Times) { x.LostMass, x.Barrier = 20*time.Minute, time.Hour }, nil},
		{"longer session", func(x *registry.Times) { x.TTL, x.Renew, x.Lost = 30*time.Second, 10*time.Second, 100*time.Second }, nil},
		{"short session", func(x *registry.Times) { x.TTL = 5 * time.Second }, []string{
			"session ttl: got 5s, want at least 10s; the registry takes no shorter session",
			"renewal: got 3s, want at most a third of the session ttl 5s; three tries must fit in it",
		}},
		{"long session", func(x *registry.Times) { x.TTL = 20 * time.Second }, []string{
			"lost grace: got 1m0s, want at least 1m20s; the time that a member without a registry needs to stop: fence 50s + evidence 5s + stop 20s + margin 5s",
		}},
		{"short grace", func(x *registry.Times) { x.Lost = 40 * time.Second }, []string{"lost grace: got 40s, want at least 1m0s"}},
		{"mass below grace", func(x *registry.Times) { x.Lost, x.LostMass = 5*time.Minute, 4*time.Minute }, []string{"lost mass: got 4m0s, want at least 5m0s"}},
		{"short barrier", func(x *registry.Times) { x.Barrier = time.Minute }, nil},
		{"no barrier", func(x *registry.Times) { x.Barrier = 0 }, []string{"barrier timeout: got 0s, want more than 0"}},
		{"slow renewal", func(x *registry.Times) { x.Request = 3 * time.Second }, []string{"renewal's time-out: got 3s, want less than the renewal 3s"}},
		{"long wait", func(x *registry.Times) { x.Wait = 2 * time.Minute }, []string{"blocking read: got 2m0s, want at most 1m0s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := registry.DefaultTimes()
			tc.set(&x)
			got := x.Check()
			for i, want := range tc.want {
				if i >= len(got) || !strings.HasPrefix(got[i].Error(), want) {
					t.Errorf("got %v, want %q", got, want)
				}
			}
			if tc.want == nil && len(got) > 0 {
				t.Errorf("got %v, want none", got)
			}
		})
	}
}

// TestTimesInequalities: whatever Check lets pass keeps all that doc/protocol.md asks for.
func TestTimesInequalities(t *testing.T) {
	const evidence, stop, margin = 5 * time.Second, 20 * time.Second, 5 * time.Second
	some := func(rnd *rand.Rand, most time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(most))) }
	passed := 0
	for seed := range uint64(20_000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		x := registry.Times{
			TTL: 5*time.Second + some(rnd, time.Minute), Renew: some(rnd, 10*time.Second), Request: some(rnd, 5*time.Second),
			Lost: some(rnd, 4*time.Minute), LostMass: some(rnd, 10*time.Minute), Barrier: some(rnd, time.Hour), Wait: some(rnd, 90*time.Second),
		}
		if len(x.Check()) > 0 {
			continue
		}
		passed++
		for name, ok := range map[string]bool{
			"three renewals in a session":          3*x.Renew <= x.TTL,
			"who is silent has no session":         2*x.TTL+x.Request < x.Silent(),
			"two polls before the fence":           x.Silent()+4*time.Second <= x.Fence(),
			"gone before it is lost":               x.Fence()+evidence+stop+margin <= x.Lost,
			"gone before it is lost with the mass": x.Outage()+evidence+stop+margin <= x.LostMass,
			"an outage is longer than a fence":     x.Outage() >= x.Fence(),
			"a grace within the stop":              registry.FenceGrace < stop,
			"a token's end is noticed":             x.Wait <= time.Minute,
		} {
			if !ok {
				t.Fatalf("seed %d: not so: %s: %+v", seed, name, x)
			}
		}
	}
	if passed < 100 {
		t.Errorf("only %d of the times passed: this shows nothing", passed)
	}
}

func TestTimesAdviceNamesAShortBarrier(t *testing.T) {
	x := registry.DefaultTimes()
	if got := x.Advice(); got != "" {
		t.Errorf("defaults: got %q, want nothing", got)
	}
	x.Barrier = 11 * time.Minute
	if got := x.Advice(); !strings.Contains(got, "barrier timeout 11m0s") || !strings.Contains(got, "11m0s (lost mass 10m0s + relaunch 1m0s)") {
		t.Errorf("got %q, want both sides named", got)
	}
}
