package hboxjob

import (
	"maps"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

// An export has the key of the page to which it leads, and one that leads to another host has none.
func TestShown(t *testing.T) {
	worker := registry.Instance{Component: "worker"}
	key, err := gate.Key("t", "d1", worker.String(), "board")
	if err != nil {
		t.Fatal(err)
	}
	p := Progress{App: "d1", token: "t"}
	for at, want := range map[string]string{
		"http://127.0.0.1:7001/":     "http://127.0.0.1:7001/?token=" + key,
		"http://other.example:7001/": "http://other.example:7001/",
	} {
		st := status.State{Instance: status.Instance{Location: status.Location{
			Host: "127.0.0.1", Ports: map[string]int{"side.board": 7001, "side.board.inner": 7002},
			Exports: map[string]string{"worker.board": at},
		}}}
		if got := p.shown(t.Context(), worker, st); !maps.Equal(got, map[string]string{"worker.board": want}) {
			t.Errorf("%s: got %v, want %s", at, got, want)
		}
	}
}
