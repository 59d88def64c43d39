package apps

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
)

// The address of an instance elsewhere is that at which its agent has shown the key of its record.
func TestAskPeer(t *testing.T) {
	const token = "secret"
	serve := func(token string) (l net.Listener, key string) {
		l, err := net.Listen("tcp", "127.0.0.2:0")
		if err != nil {
			t.Fatal(err)
		}
		id, err := status.NewPeerIdentity(token, "d1", "worker-0")
		if err != nil {
			t.Fatal(err)
		}
		source := status.Source{State: func() status.State { return status.State{Inc: "i1"} }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- status.ServePeers(ctx, l, id, status.PeerHandler(source, token), slog.New(slog.DiscardHandler))
		}()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return l, id.Key
	}
	l, key := serve(token)
	stranger, _ := serve("another")
	for name, tt := range map[string]struct {
		peer, inc string
		dead      bool
		facts     Facts
		at, says  string
	}{
		"its agent":             {peer: registry.JoinPeer(l.Addr().String(), key), inc: "i1", at: "127.0.0.2"},
		"another life":          {peer: registry.JoinPeer(l.Addr().String(), key), inc: "i2", says: "another agent of it answers"},
		"without its key":       {peer: registry.JoinPeer(stranger.Addr().String(), key), inc: "i1", says: "d1/worker-0: "},
		"an agent that is gone": {peer: registry.JoinPeer(l.Addr().String(), key), inc: "i1", dead: true, says: "has no agent that could be asked"},
		"of this host":          {facts: Facts{States: map[string]status.State{"worker-0": {}}}},
		"a run of this host":    {dead: true, facts: Facts{Local: &status.AppFile{}}},
		"of a run of this host, elsewhere": {
			peer: registry.JoinPeer(l.Addr().String(), key), inc: "i1", facts: Facts{Local: &status.AppFile{}}, at: "127.0.0.2",
		},
	} {
		m := consul.MemberStatus{Instance: registry.Instance{Component: "worker"}, Live: !tt.dead}
		m.Peer, m.Inc = tt.peer, tt.inc
		f := tt.facts
		f.ID, f.Registry = "d1", &consul.Status{App: registry.AppRecord{Token: token}, Members: []consul.MemberStatus{m}}
		at, err := f.AskPeer(t.Context(), "worker-0")
		got, said := "", ""
		if at.IsValid() {
			got = at.String()
		}
		if err != nil {
			said = err.Error()
		}
		if got != tt.at || (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %q, %q, want %q, %q", name, got, said, tt.at, tt.says)
		}
		if _, known := f.Peers["worker-0"]; known != (tt.at != "") {
			t.Errorf("%s: asked: %v", name, known)
		}
	}
}
