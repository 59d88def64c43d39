package member

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// In a gang of mixed builds the members of the earlier one name no key. They are not asked: in an outage they count as
// members that do not answer, and the probe finds nothing wrong with them.
func TestMembersOfAnEarlierBuildAreNotAsked(t *testing.T) {
	row := registry.Row{Instance: registry.Instance{Component: "worker", Index: 1}, Inc: "old", Peer: "127.0.0.1:1"}
	f := &Fence{cfg: fenceConfig{dial: dialer{app: "d1", host: "h", token: func() string { return "t" }}.dial}}
	if answer, err := f.askPeer(t.Context(), row); err == nil || !strings.Contains(err.Error(), "names no key") {
		t.Errorf("asked about the registry: %+v, %v", answer, err)
	}
	p := &probe{cfg: probeConfig{token: func() string { return "t" }}}
	if err := p.ask(t.Context(), row); err != nil {
		t.Errorf("the probe finds %v", err)
	}
}
