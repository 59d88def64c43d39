package member

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// consulFake answers as Consul does with one service of another incarnation in its catalog, and keeps what it is told.
type consulFake struct {
	mu   sync.Mutex
	puts []string
}

func (f *consulFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		f.puts = append(f.puts, r.URL.Path)
	case strings.HasPrefix(r.URL.Path, "/v1/catalog/service/"):
		fmt.Fprint(w, `[{"Node":"other","ServiceID":"d1-worker-0-next","ServiceName":"d1-worker","ServiceMeta":{"app":"d1","run":"","component":"worker","index":"0","incarnation":"next"}}]`)
	default:
		fmt.Fprint(w, "{}")
	}
}

func (f *consulFake) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.puts)
}

// Whoever may have been replaced during a cut tells Consul nothing new: the successor's service and name stay as they
// are.
func TestServicesOfWhoMayBeReplaced(t *testing.T) {
	const (
		register = "/v1/agent/service/register"
		speak    = "/v1/agent/check/update/service:d1-worker-0-old"
		reap     = "/v1/catalog/deregister"
		take     = "/v1/agent/service/deregister/d1-worker-0-old"
	)
	fake := &consulFake{}
	server := httptest.NewServer(fake)
	defer server.Close()
	at, err := registry.ParseConsulAddress(server.URL, false)
	if err != nil {
		t.Fatal(err)
	}
	client, err := consul.Open(consul.Config{Address: at})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	holds := false
	p := plan.Plan{Who: plan.Who{Component: "worker"}, Network: plan.Network{Discovery: &plan.Discovery{Service: "d1-worker", Tag: "worker-0"}}}
	p.Exports = []plan.Export{{Group: "worker", Name: "address", Value: "http://{{host}}:4000", Address: true}}
	d := &discovery{cfg: discoveryConfig{
		appID: "d1", inc: "old", host: "127.0.0.2", times: registry.DefaultTimes(), client: client, membership: &consul.Membership{},
		loop: machine.NewAgent(), log: slog.New(slog.DiscardHandler),
		holds: func() bool { return holds }, ports: func() map[string]int { return nil },
	}, plan: p, named: true, services: map[string]registered{}}
	waiting := machine.State{Phase: machine.Waiting, Instance: registry.Instance{Component: "worker"}}
	staging := waiting
	staging.Phase = machine.Staging
	cutOff := waiting
	cutOff.CutOff = true
	for _, step := range []struct {
		name  string
		holds bool
		state machine.State
		want  []string
		err   error
	}{
		{"nothing is heard of the registry before it could announce itself", false, waiting, nil, registry.ErrUnreachable},
		{"it still has its index, and stages: what the dead have left goes", true, staging, []string{reap}, nil},
		{"its own comes", true, waiting, []string{register, speak}, nil},
		{"nothing is heard: what is there stays", false, waiting, []string{speak}, nil},
		{"the fence has fallen: it is taken back", false, cutOff, []string{take}, nil},
		{"contact again, and its index is still its own", true, waiting, []string{register, speak}, nil},
	} {
		before := len(fake.told())
		holds = step.holds
		if err := d.reconcile(t.Context(), step.state); !errors.Is(err, step.err) {
			t.Errorf("%s: got %v, want %v", step.name, err, step.err)
		}
		if got := fake.told()[before:]; !slices.Equal(got, step.want) {
			t.Errorf("%s: Consul was told %q, want %q", step.name, got, step.want)
		}
		d.services = age(d.services)
	}
}

// age has every service be due for a word.
func age(told map[string]registered) map[string]registered {
	for id, one := range told {
		one.at = time.Time{}
		told[id] = one
	}
	return told
}
