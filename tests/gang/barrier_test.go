package gang

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// A gang that does not come together ends with the names of those who are missing. The shortest limit that
// the protocol's times allow is two minutes, so this is how long it takes.
func barrierTimeout(t *testing.T, at place) {
	const limit = 121 * time.Second
	g := newGang(t, at, workers(3, nil))
	for _, name := range []string{"worker-0", "worker-2"} {
		g.launch(name, nil, "--lost-grace", "60s", "--lost-mass", "60s", "--barrier-timeout", limit.String())
		g.sees(name, "waiting", "")
	}
	for _, name := range []string{"worker-0", "worker-2"} {
		if code := g.agents[name].waitFor(limit + watchdog); code != 76 {
			t.Errorf("agent of %s ended with %d, want 76", name, code)
		}
	}
	d, _ := g.directive()
	v := d.Verdict
	if v == nil || v.Class != registry.ClassTimeout || !strings.Contains(v.Cause, "1 of 3 instances were not ready within 121 s: worker-1 (never joined)") {
		t.Errorf("verdict %+v, want timeout naming worker-1", v)
	}
	for _, name := range g.def.instances() {
		if n := g.stage.starts(name); n != 0 {
			t.Errorf("%s was started %d times, want never", name, n)
		}
	}
}
