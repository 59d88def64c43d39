package registrytest_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// cost: a member with a given index makes seven requests until it has what it starts with; while it waits
// only its session's renewals, and one blocking read that is armed, reach the registry.
func cost(t *testing.T, s server) {
	a := newApp(t, s)
	first := a.agent(t, "worker-0").join()
	w := newWire(t, s)
	a.url = w.URL()
	var asked, watched atomic.Int32
	w.when(func(r *http.Request, _ string) *encounter {
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/session/renew/"):
		case strings.HasSuffix(r.URL.Path, "/directive"):
			watched.Add(1)
		default:
			asked.Add(1)
		}
		return nil
	})
	member := a.agent(t, "worker-1").join()
	member.told(1, registry.ActWait)
	member.ready(1)
	a.url = s.URL()
	all := gang{first, a.agent(t, "ps-0").join()}
	all.release(1)
	d := member.told(1, registry.ActRun)
	if _, err := member.membership.Roster(soon(t), d.Roster); err != nil {
		t.Fatal(err)
	}
	// The second blocking read is the one armed for what comes after the start.
	if asked.Load() != 6 || watched.Load() > 2 {
		t.Errorf("%d requests and %d readings of the directive, want 6 and at most 2", asked.Load(), watched.Load())
	}
}
