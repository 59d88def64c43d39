package member

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// A holder on another host is asked where it listens for its peers: what a launcher says of it may be wrong.
func TestHolderOnAnotherHostIsAsked(t *testing.T) {
	const token = "of the run"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	there := status.Source{State: func() status.State { return status.State{Inc: "old"} }}
	id, err := status.NewPeerIdentity(token, "d1", "worker-0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		served <- status.ServePeers(ctx, l, id, status.PeerHandler(there, token), slog.New(slog.DiscardHandler))
	}()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	peer := registry.JoinPeer(l.Addr().String(), id.Key)
	a := New(t.Context(), Config{Host: Host{Self: proc.Facts{Machine: "here"}}})
	for name, tt := range map[string]struct {
		m     registry.Member
		token string
		want  bool
	}{
		"it answers":                      {registry.Member{Inc: "old", Process: registry.Process{Machine: "there"}, Peer: peer}, token, true},
		"it answers beside this agent":    {registry.Member{Inc: "old", Process: registry.Process{Machine: "here"}, API: "/nowhere", Peer: peer}, token, true},
		"its successor answers":           {registry.Member{Inc: "older", Process: registry.Process{Machine: "there"}, Peer: peer}, token, false},
		"an agent of another run does":    {registry.Member{Inc: "old", Process: registry.Process{Machine: "there"}, Peer: peer}, "of another", false},
		"nobody does":                     {registry.Member{Inc: "old", Process: registry.Process{Machine: "there"}, Peer: registry.JoinPeer(nobody, id.Key)}, token, false},
		"it is of an earlier build":       {registry.Member{Inc: "old", Process: registry.Process{Machine: "there"}, Peer: l.Addr().String()}, token, false},
		"it listens for nobody":           {registry.Member{Inc: "old", Process: registry.Process{Machine: "there"}}, token, false},
		"its socket is of another host's": {registry.Member{Inc: "old", Process: registry.Process{Machine: "there"}, API: "/nowhere"}, token, false},
	} {
		if got := a.answers(t.Context(), registry.Instance{Component: "worker"}, tt.m, tt.token); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
