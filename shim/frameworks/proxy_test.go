package frameworks_test

import (
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

func TestMembersAreReachedPastTheProxy(t *testing.T) {
	const name = "no_grpc_proxy"
	r := gang("ps:ps=1", "worker:worker=2", "evaluator:evaluator=1")
	r.Rows[0].Addr = "[2001:db8::1]:2000"
	r.Rows[2].Addr = "worker0.example:2999" // two on one host
	r.Rows[3].Addr = "10.0.0.9"             // an evaluator is dialled by nobody
	for _, tt := range []struct {
		name           string
		env, inherited map[string]string
		want           string // "": not set
	}{
		{"no proxy", nil, nil, ""},
		{"no proxy, but some are excepted", nil, map[string]string{"no_proxy": "a"}, ""},
		{"capital letters, which gRPC does not read", nil, map[string]string{"HTTP_PROXY": "http://p:1"}, ""},
		{"inherited", nil, map[string]string{"http_proxy": "http://p:1"}, "worker0.example,2001:db8::1"},
		{"of TLS", nil, map[string]string{"https_proxy": "http://p:1"}, "worker0.example,2001:db8::1"},
		{"the app's own", map[string]string{"grpc_proxy": "http://p:1"}, nil, "worker0.example,2001:db8::1"},
		{"exceptions stay", nil, map[string]string{"http_proxy": "http://p:1", "no_proxy": "localhost,.corp"}, "localhost,.corp,worker0.example,2001:db8::1"},
		{"the user decides", map[string]string{"http_proxy": "http://p:1"}, map[string]string{name: "x"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := planOf(r.Rows[1])
			p.Process = plan.Process{Env: tt.env, Inherited: tt.inherited}
			env, _ := frameworks.Env(p, r)
			got, set := env[name]
			if got != tt.want || set != (tt.want != "") {
				t.Errorf("got %q (set: %t), want %q", got, set, tt.want)
			}
		})
	}
	p := planOf(registry.Row{Instance: registry.Instance{Component: "tensorboard"}, Role: "service"})
	p.Process.Inherited = map[string]string{"http_proxy": "http://p:1"}
	if env, _ := frameworks.Env(p, r); len(env) != 0 {
		t.Errorf("a service is told %v, want nothing", env)
	}
}
