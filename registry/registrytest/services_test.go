package registrytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// longTTL does not pass while a test runs.
const longTTL = 10 * time.Minute

// servedBy is a service of one instance of the app at that address.
func servedBy(app, inc string, in registry.Instance, address string, port int) consul.Service {
	name := registry.ServiceName(app, in.Component)
	return consul.Service{
		ID: fmt.Sprintf("%s-%d-%s", name, in.Index, inc), Name: name, Tags: []string{registry.MemberTag(app, in), "generation-1"},
		Meta: map[string]string{"app": app, "component": in.Component, "incarnation": inc}, Address: address, Port: port,
	}
}

func open(t testing.TB, s server, token string) *consul.Client {
	t.Helper()
	c, err := consul.Open(consul.Config{Address: addressOf(t, s.URL()), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// until asks again until it is so.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx := soon(t)
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", watchdog, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// resolved are the addresses that the server's DNS has for a name; none when it knows of no such name.
func resolved(t testing.TB, s *consulserver.Server, name string) []string {
	t.Helper()
	all, err := s.Resolver().LookupHost(soon(t), name+".")
	if unknown, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !unknown.IsNotFound) {
		t.Fatalf("resolve %s: %v", name, err)
	}
	slices.Sort(all)
	return all
}

func ports(t testing.TB, s *consulserver.Server, name string) []uint16 {
	t.Helper()
	_, all, err := s.Resolver().LookupSRV(soon(t), "", "", name+".")
	if err != nil {
		t.Fatalf("resolve %s: %v", name, err)
	}
	var found []uint16
	for _, one := range all {
		found = append(found, one.Port)
	}
	slices.Sort(found)
	return found
}

func worked(t testing.TB, act string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", act, err)
	}
}

// TestServices: a service is found by DNS at the Consul agent that it was told to and everywhere else, as long as somebody speaks
// for it, and a successor takes away what a dead predecessor has left with another Consul agent.
func TestServices(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{DNS: true})
	host := s.Client(t, "", "")
	ctx, here, there := soon(t), open(t, s, ""), open(t, host, "")
	in := registry.Instance{Component: "worker", Index: 0}
	name := registry.MemberName("d1", in, "")

	domain, err := there.Domain(ctx)
	worked(t, "domain", err)
	if domain != registry.DefaultDomain {
		t.Errorf("domain: got %q", domain)
	}
	old := servedBy("d1", "inc-1", in, "127.0.0.7", 21000)
	worked(t, "register", there.Register(ctx, old, consul.Health{Why: "starts"}, longTTL))
	until(t, "the catalog has it", func() bool {
		seen, blind, err := there.Seen(ctx, old, old.Tags[0])
		worked(t, "look", err)
		if blind {
			t.Error("blind without ACLs")
		}
		return seen
	})
	if got := resolved(t, s, name); !slices.Equal(got, []string{"127.0.0.7"}) {
		t.Errorf("%s: got %q while it is not passing", name, got)
	}
	worked(t, "speak", there.Speak(ctx, old.ID, consul.Health{Passing: true, Why: "listens"}))
	if got := ports(t, s, name); !slices.Equal(got, []uint16{21000}) {
		t.Errorf("ports of %s: got %d", name, got)
	}
	if err := here.Speak(ctx, old.ID, consul.Health{Passing: true}); !errors.Is(err, consul.ErrNoCheck) {
		t.Errorf("speak to another agent: got %v, want %v", err, consul.ErrNoCheck)
	}

	// It dies: nobody speaks for it any more. Its successor registers elsewhere, and takes away what is left; what another
	// instance has stays.
	worked(t, "register for a moment", there.Register(ctx, old, consul.Health{Passing: true}, time.Second))
	until(t, "the name is not given out", func() bool { return len(resolved(t, s, name)) == 0 })
	another := servedBy("d1", "inc-9", registry.Instance{Component: "worker", Index: 1}, "127.0.0.9", 21000)
	worked(t, "register another", there.Register(ctx, another, consul.Health{Passing: true}, longTTL))
	moved := servedBy("d1", "inc-2", in, "127.0.0.8", 21001)
	worked(t, "register the successor", here.Register(ctx, moved, consul.Health{Passing: true}, longTTL))
	var found []consul.Registered
	until(t, "both of the index are found, and no other's", func() bool {
		found, err = here.Services(ctx, moved.Name, moved.Tags[0])
		worked(t, "services", err)
		return len(found) == 2 && !slices.ContainsFunc(found, func(o consul.Registered) bool { return o.ID == another.ID })
	})
	for _, one := range found {
		if one.ID == old.ID {
			worked(t, "reap", here.Reap(ctx, one))
		}
	}
	until(t, "the name is the successor's alone", func() bool { return slices.Equal(resolved(t, s, name), []string{"127.0.0.8"}) })
	if got := resolved(t, s, moved.Name+".service.consul"); !slices.Equal(got, []string{"127.0.0.8", "127.0.0.9"}) {
		t.Errorf("all workers: got %q", got)
	}

	worked(t, "deregister", here.Deregister(ctx, moved.ID))
	worked(t, "deregister again", here.Deregister(ctx, moved.ID))
	until(t, "the name is gone", func() bool { return len(resolved(t, s, name)) == 0 })

	// Nobody speaks for it any more.
	worked(t, "register", here.Register(ctx, moved, consul.Health{Passing: true}, time.Second))
	until(t, "the name is there", func() bool { return len(resolved(t, s, name)) == 1 })
	until(t, "the name is not given out", func() bool { return len(resolved(t, s, name)) == 0 })
	worked(t, "speak", here.Speak(ctx, moved.ID, consul.Health{Passing: true}))
	until(t, "the name is back", func() bool { return len(resolved(t, s, name)) == 1 })
}

// TestServicesOutliveARestart: what the server was told is there again after a restart, and is asked for again after it lost its data.
func TestServicesOutliveARestart(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	ctx, c := soon(t), open(t, s, "")
	one := servedBy("d1", "inc-1", registry.Instance{Component: "ps"}, "127.0.0.1", 21000)
	worked(t, "register", c.Register(ctx, one, consul.Health{Passing: true}, longTTL))
	speak := func() (err error) {
		until(t, "it answers", func() bool {
			err = c.Speak(ctx, one.ID, consul.Health{Passing: true})
			return !errors.Is(err, registry.ErrUnreachable)
		})
		return err
	}
	s.Restart()
	worked(t, "speak after a restart", speak())
	s.RestartEmpty()
	if err := speak(); !errors.Is(err, consul.ErrNoCheck) {
		t.Errorf("after the data was lost: got %v, want %v", err, consul.ErrNoCheck)
	}
}

// TestNoServices: the registry of one machine has none, and says so at once.
func TestNoServices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.sock")
	l, err := embedded.ListenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, serveEmbedded(t, l, "unix:"+path), "")
	if _, err := c.Domain(soon(t)); !errors.Is(err, consul.ErrNoServices) {
		t.Errorf("got %v, want %v", err, consul.ErrNoServices)
	}
}

// rootToken is the first management token of a server with ACLs.
const rootToken = "6d75a000-0000-4000-8000-000000000001"

// withACLs denies whatever a token does not allow, and has another domain.
const withACLs = `acl { enabled = true, default_policy = "deny", tokens { initial_management = "` + rootToken + `", agent = "` + rootToken + `" } }
domain = "lab.example"
`

// TestServicesWithACLs: the rights of the manual are enough for everything, each of them is needed, and what is missing is named.
func TestServicesWithACLs(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{DNS: true, Config: withACLs, Token: rootToken})
	ctx, in := soon(t), registry.Instance{Component: "worker", Index: 0}
	one := servedBy("d1", "inc-1", in, "127.0.0.1", 21000)

	writer := open(t, s, token(t, s, `service_prefix "d1-" { policy = "write" }`))
	if domain, err := writer.Domain(ctx); err != nil || domain != registry.DefaultDomain {
		t.Errorf("domain without the right to ask: got %q, %v", domain, err)
	}
	worked(t, "register", writer.Register(ctx, one, consul.Health{Passing: true}, longTTL))
	worked(t, "speak", writer.Speak(ctx, one.ID, consul.Health{Passing: true}))
	until(t, "it cannot see the catalog", func() bool {
		seen, blind, err := writer.Seen(ctx, one, one.Tags[0])
		worked(t, "look", err)
		if seen {
			t.Fatal("seen without the right to read nodes")
		}
		return blind
	})
	if err := writer.Register(ctx, servedBy("d2", "inc-1", in, "127.0.0.1", 21000), consul.Health{}, longTTL); !errors.Is(err, registry.ErrForbidden) {
		t.Errorf("register another app's: got %v, want %v", err, registry.ErrForbidden)
	}

	full := open(t, s, token(t, s, `service_prefix "d1-" { policy = "write" } node_prefix "" { policy = "read" } agent_prefix "" { policy = "read" }`))
	if domain, err := full.Domain(ctx); err != nil || domain != "lab.example" {
		t.Errorf("domain: got %q, %v", domain, err)
	}
	until(t, "it sees the catalog", func() bool {
		seen, _, err := full.Seen(ctx, one, one.Tags[0])
		worked(t, "look", err)
		return seen
	})

	// DNS has no token of its own: it answers with what the default token of its Consul agent may read.
	name := registry.MemberName("d1", in, "lab.example")
	if got := resolved(t, s, name); len(got) > 0 {
		t.Errorf("%s: got %q before DNS may read", name, got)
	}
	ask(t, s, "/v1/agent/token/default", map[string]string{
		"Token": token(t, s, `service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`),
	}, nil)
	until(t, "DNS answers", func() bool { return slices.Equal(resolved(t, s, name), []string{"127.0.0.1"}) })
	worked(t, "deregister", full.Deregister(ctx, one.ID))
}

// token makes one with these rules.
func token(t testing.TB, s *consulserver.Server, rules string) string {
	t.Helper()
	name := fmt.Sprintf("policy-%d", time.Now().UnixNano())
	ask(t, s, "/v1/acl/policy", map[string]any{"Name": name, "Rules": rules}, nil)
	var made struct{ SecretID string }
	ask(t, s, "/v1/acl/token", map[string]any{"Policies": []map[string]string{{"Name": name}}}, &made)
	return made.SecretID
}

func ask(t testing.TB, s *consulserver.Server, path string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	worked(t, "encode", err)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://"+s.HTTPAddr+path, bytes.NewReader(text))
	worked(t, "request", err)
	req.Header.Set("X-Consul-Token", rootToken)
	answer, err := http.DefaultClient.Do(req)
	worked(t, path, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, answer.Status)
	}
	if into != nil {
		worked(t, path, json.NewDecoder(answer.Body).Decode(into))
	}
}
