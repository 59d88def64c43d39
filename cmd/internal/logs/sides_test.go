package logs

import (
	"testing"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// A side process that may still come is not refused; where the agent has named all of them, another one is.
func TestCheckSide(t *testing.T) {
	in := registry.Instance{Component: "worker"}
	for name, tt := range map[string]struct {
		phase string
		sides []status.Side
		side  string
		code  int
	}{
		"not started":             {"starting", nil, "board", 0},
		"started":                 {"running", []status.Side{{Name: "board"}}, "board", 0},
		"another one":             {"running", []status.Side{{Name: "board"}}, "bord", exit.Usage},
		"another one in backoff":  {"backoff", []status.Side{{Name: "board"}}, "bord", exit.Usage},
		"none beside the process": {"running", nil, "board", exit.Usage},
	} {
		var st status.State
		st.Phase, st.Sides = tt.phase, tt.sides
		l := Reader{
			Facts: apps.Facts{
				ID: "a1", Peers: map[string]status.State{"worker-0": st},
				Registry: &consul.Status{Members: []consul.MemberStatus{{Instance: in}}},
			},
			Elsewhere: map[string]apps.Agent{"worker-0": (*status.Client)(nil)},
		}
		for _, target := range []apps.Target{{App: "a1"}, {App: "a1", Instance: &in}} {
			if err := l.CheckSide(t.Context(), target, tt.side); exit.CodeOf(err) != tt.code {
				t.Errorf("%s: got code %d, want %d: %v", name, exit.CodeOf(err), tt.code, err)
			}
		}
	}
}
