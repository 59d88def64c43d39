package registrytest_test

import (
	"testing"

	"github.com/muster-agent/muster/registry"
)

// rewrites: each rewrite of the directive wakes the whole gang. A generation costs two: one that begins it, and one that
// seals its roster and lets everybody start. With more members of a flex it is one more, which newcomers wait for.
// However many members fail at once, one generation follows. Seq counts the rewrites.
func rewrites(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	seq := 0
	cost := func(what string, gen, want int) {
		t.Helper()
		d := all[0].told(gen, registry.ActRun)
		if got := d.Seq - seq; got != want {
			t.Errorf("%s: %d rewrites, want %d", what, got, want)
		}
		seq = d.Seq
	}
	cost("the first generation", 1, 2)
	all[1].fail(1, registry.ClassApp)
	all[2].fail(1, registry.ClassApp)
	all.release(2)
	cost("a restart", 2, 2)
	more := a.agent(t, "worker-2", launched)
	joined := make(chan error, 1)
	go func() { joined <- more.tryJoin() }()
	must(t, all[0].client.Ask(soon(t), a.facts.App, registry.Ask{Kind: registry.AskFlex, Args: map[string]string{"worker": "3"}}))
	must(t, <-joined)
	must(t, more.membership.Publish(soon(t), func(m *registry.Member) { m.Exports = map[string]string{"exports.address": "127.0.0.1:1"} }))
	all = append(all, more)
	all.release(3)
	cost("a flex up", 3, 3)
}
