package conductor

import (
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestMovedWhileItStages: before its ports are known the host decides, but for one that goes by its name.
func TestMovedWhileItStages(t *testing.T) {
	for _, tt := range []struct {
		what, host, row string
		want            bool
	}{
		{"by the host, back", "10.0.0.1", "10.0.0.1:20", false},
		{"by the host, elsewhere", "10.0.0.2", "10.0.0.1:20", true},
		{"by name", "10.0.0.2", "ps-0.d1-ps.service.consul:20", false},
		{"by name in another domain", "10.0.0.2", "ps-0.d1-ps.service.lab.example:20", false},
		{"another's name", "10.0.0.2", "ps-1.d1-ps.service.consul:20", true},
	} {
		m := registry.Member{Inc: "new", Phase: registry.PhaseJoined, Addr: tt.host}
		if got := moved("d1", m, registry.Row{Instance: registry.Instance{Component: "ps"}, Inc: "old", Addr: tt.row}); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.what, got, tt.want)
		}
	}
}
