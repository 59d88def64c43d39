package logs

import (
	"io"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
)

// What another host has is named with the host and what to do, and an app as its instances.
func TestAbsent(t *testing.T) {
	member := func(index int, live bool, phase registry.Phase, peer string) consul.MemberStatus {
		return consul.MemberStatus{
			Instance: registry.Instance{Component: "worker", Index: index}, Live: live,
			Member: registry.Member{Phase: phase, Addr: "10.0.0.2", Peer: peer},
		}
	}
	app := func(v *registry.Verdict, all ...consul.MemberStatus) *consul.Status {
		record := registry.AppRecord{Token: "secret", Counts: map[string]int{"worker": 2}}
		return &consul.Status{ID: "a1", App: record, Members: all, Verdict: v}
	}
	silent := member(1, true, registry.PhaseReady, "10.0.0.2:9")
	ended := member(1, false, registry.PhaseEnded, "")
	over := &registry.Verdict{Outcome: registry.Succeeded}
	for name, tt := range map[string]struct {
		known    *consul.Status
		instance string // "": the app
		code     int
		want     string
	}{
		"no such instance": {app(nil, silent), "worker-9", exit.Usage, "a1 has no instance worker-9; it has: worker-1"},
		"not yet":          {app(nil, silent), "worker-0", 1, "a1/worker-0 has no agent yet: muster status a1 says how it stands"},
		"silent": {
			app(nil, silent), "worker-1", 1, "a1/worker-1: its agent on 10.0.0.2 does not answer; what it wrote is there: " +
				"muster logs a1/worker-1 on that host, or muster status a1",
		},
		"at its socket alone": {
			app(nil, member(1, true, registry.PhaseReady, "")), "worker-1", exit.Usage,
			"the agent of a1/worker-1 answers on its own host only, 10.0.0.2: muster logs a1/worker-1 there",
		},
		"ended": {
			app(over, ended), "worker-1", exit.Usage, "a1/worker-1 has ended; its logs are on its own host, 10.0.0.2: " +
				"muster logs a1/worker-1 there, or --history URL of a store that keeps logs",
		},
		"lost": {
			app(nil, member(1, false, registry.PhaseLost, "")), "worker-1", 1, "a1/worker-1 has no agent any more; its logs " +
				"are on its own host, 10.0.0.2: muster logs a1/worker-1 there",
		},
		"app silent": {
			app(nil, silent), "", 1, "a1: no answer from worker-1 on 10.0.0.2; what they wrote is there: muster logs a1 on " +
				"these hosts, or muster status a1",
		},
		"app ended": {
			app(over, ended, ended), "", exit.Usage, "a1 has ended; its logs are on its own hosts, 10.0.0.2: muster logs a1 " +
				"there, or --history URL of a store that keeps logs",
		},
		"app interrupted": {
			app(nil, ended), "", 1, "a1 has no agent any more; its logs are on its own hosts, 10.0.0.2: muster logs a1 there",
		},
		"app without agents": {app(nil), "", 1, "a1 has no agent yet: muster status a1 says how it stands"},
	} {
		for _, follow := range []bool{false, true} {
			l := Reader{
				Lookup: apps.Lookup{Warn: io.Discard}, Facts: apps.Facts{ID: "a1", Registry: tt.known}, Follow: follow,
				Streams: []Stream{{File: "stdout.log", Out: io.Discard}},
			}
			err := l.One(t.Context(), tt.instance)
			if tt.instance == "" {
				err = l.All(t.Context())
			}
			if err == nil || err.Error() != tt.want || exit.CodeOf(err) != tt.code {
				t.Errorf("%s: code %d, %v; want %d, %s", name, exit.CodeOf(err), err, tt.code, tt.want)
			}
		}
	}
}

// An agent that ends between two questions is named as one that was silent from the start.
func TestGoneMeanwhile(t *testing.T) {
	known := &consul.Status{ID: "a1", Members: []consul.MemberStatus{{
		Instance: registry.Instance{Component: "worker", Index: 1}, Live: true,
		Member: registry.Member{Addr: "10.0.0.2", Peer: "127.0.0.1:1#" + strings.Repeat("0", 64)},
	}}}
	known.App.Token = "secret"
	f := apps.Facts{ID: "a1", Registry: known}
	l := Reader{
		Lookup: apps.Lookup{Warn: io.Discard}, Facts: f, Tail: -1,
		Streams:   []Stream{{File: "stdout.log", Out: io.Discard}},
		Elsewhere: map[string]apps.Agent{"worker-1": f.Agent("worker-1")},
	}
	const want = "a1/worker-1: its agent on 10.0.0.2 does not answer (connect: connection refused); "
	if err := l.One(t.Context(), "worker-1"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}
