package registrytest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// commonStep: what it costs a member to know what its gang can resume from does not grow with the gang: the conductor
// reads the keys of all, and the members what it found.
func commonStep(t *testing.T, s server) {
	const n = 50
	a := newApp(t, s, component("worker", n, registry.ScopeGang))
	w := newWire(t, s)
	a.url = w.URL()
	var lists, asked atomic.Int32
	w.when(func(r *http.Request, _ string) *encounter {
		switch {
		case strings.HasSuffix(r.URL.Path, "/checkpoint/") && r.URL.Query().Has("recurse"):
			lists.Add(1)
		case strings.HasSuffix(r.URL.Path, "/common"):
			asked.Add(1)
		}
		return nil
	})
	var all gang
	for i := range n {
		all = append(all, a.agent(t, fmt.Sprintf("worker-%d", i)).join())
	}
	all.release(1)
	store := func(step int64) {
		t.Helper()
		for _, g := range all {
			one := registry.CheckpointStep{Step: step, URI: fmt.Sprintf("hdfs://x/%s/%d", g.name(), step), SHA256: "s"}
			must(t, g.membership.Store(soon(t), 1, one))
			_, err := g.membership.CommonStep(soon(t))
			must(t, err)
		}
	}
	before, began := lists.Load(), time.Now() // of the seal
	for step := int64(10); step <= 30; step += 10 {
		store(step)
	}
	if got := asked.Load(); got != 3*n {
		t.Errorf("the members asked %d times for the common step, want %d", got, 3*n)
	}
	until(t, "the last common step is published", func() bool {
		found, err := all[n-1].membership.CommonStep(soon(t))
		must(t, err)
		return found.Gen == 1 && found.Step != nil && *found.Step == 30 && found.Savers["worker"] == n
	})
	most := 10 + int32(time.Since(began)/(5*time.Second)) // one in five seconds, not one or two for each of the 150 commits
	if got := lists.Load() - before; got == 0 || got > most {
		t.Errorf("the keys of all were read %d times for %d commits, want at most %d", got, 3*n, most)
	}
}
