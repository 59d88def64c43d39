package registrytest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
)

// TestForgetOlderThan: of two apps only the one goes that is over for long enough and has nobody left.
func TestForgetOlderThan(t *testing.T) {
	l, err := embedded.ListenLoopback(t.Context(), "127.0.0.1:0")
	must(t, err)
	s := serveEmbedded(t, l, "consul://"+l.Addr().String())
	living := newApp(t, s).assemble(t, 1)
	over := newApp(t, s).assemble(t, 1)
	over[0].finish(1)
	over[1].finish(1)
	over.each(func(g *agent) { g.told(1, registry.ActStop) })
	over.each((*agent).leave)

	operator := living[0].client
	now := time.Now()
	if gone, err := operator.ForgetOlderThan(soon(t), time.Hour, now); err != nil || len(gone) != 0 {
		t.Errorf("forgot %v, %v: none is an hour old", gone, err)
	}
	gone, err := operator.ForgetOlderThan(soon(t), time.Hour, now.Add(2*time.Hour))
	if want := []string{over[0].me.App}; err != nil || !slices.Equal(gone, want) {
		t.Errorf("forgot %v, %v, want %v", gone, err, want)
	}
	if st := living[0].status(); st.Live != 3 {
		t.Errorf("the living app: %+v", st)
	}
}
