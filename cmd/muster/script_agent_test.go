package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim/status"
)

// Agents and registries that a script may have beside the real program.

type puppets struct{}

// puppetShow are the agents of one script.
type puppetShow struct {
	mu     sync.Mutex
	agents map[string]*puppet // by APP/INSTANCE
}

// puppet answers on an agent's socket.
type puppet struct {
	signals []int
	end     func()
}

func show(ts *testscript.TestScript) *puppetShow { return ts.Value(puppets{}).(*puppetShow) }

// startAgent serves the local API of an instance: `agent APP INSTANCE [JSON]`, where JSON are fields
// of its state. `! agent APP INSTANCE` ends it, as SIGKILL would.
func startAgent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: agent APP INSTANCE [JSON]")
	}
	name := args[0] + "/" + args[1]
	all := show(ts)
	if neg {
		all.mu.Lock()
		p := all.agents[name]
		all.mu.Unlock()
		p.end()
		return
	}
	in, err := registry.ParseInstance(args[1])
	ts.Check(err)
	state := status.State{App: args[0], Run: "1", Inc: "inc-" + args[1], Instance: status.Instance{
		Version: 1, Identity: status.IdentityOf(in), Phase: "running",
		Since:    time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC),
		Location: status.Location{Host: "127.0.0.1"}, Starts: status.Starts{Generation: 1, Attempt: 1},
	}}
	state.Role = in.Component
	if len(args) > 2 {
		ts.Check(json.Unmarshal([]byte(args[2]), &state))
	}
	dir := status.Dir(ts.Getenv("STATE"))
	ts.Check(status.WriteJSON(filepath.Join(dir.App(args[0]), args[1]+".json"), status.InstanceFile{Version: 1, Pid: os.Getpid(), Inc: state.Inc}))
	l, err := status.Listen(dir.Socket(args[0], args[1]))
	ts.Check(err)
	p := &puppet{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	p.end = sync.OnceFunc(func() { cancel(); ts.Check(<-done) })
	go func() { done <- status.Serve(ctx, l, status.Handler(p.source(all, state, cancel))) }()
	ts.Defer(p.end)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.agents[name] = p
}

func (p *puppet) source(all *puppetShow, state status.State, leave func()) status.Source {
	return status.Source{
		State:  func() status.State { return state },
		LogDir: state.LogDir,
		Signal: func(n int) error {
			if state.Phase != "running" {
				return fmt.Errorf("%s has no process: it is %s", state.Instance.Instance, state.Phase)
			}
			all.mu.Lock()
			defer all.mu.Unlock()
			p.signals = append(p.signals, n)
			return nil
		},
		Stop: func(*time.Duration) error { leave(); return nil },
		Exec: func(context.Context, status.ExecRequest) (status.Execution, error) {
			return status.Execution{}, errors.New("a puppet runs nothing")
		},
	}
}

// knownSignals asserts what an agent was asked to send: `signals APP/INSTANCE NUMBER…`.
func knownSignals(ts *testscript.TestScript, _ bool, args []string) {
	all := show(ts)
	all.mu.Lock()
	defer all.mu.Unlock()
	var got []string
	for _, n := range all.agents[args[0]].signals {
		got = append(got, strconv.Itoa(n))
	}
	if want := strings.Join(args[1:], " "); strings.Join(got, " ") != want {
		ts.Fatalf("signals of %s: got %v, want %s", args[0], got, want)
	}
}

// startRegistry serves an embedded registry on a socket, with the keys of a JSON file {key: value}
// in it: `registry PATH FILE`. `registry tcp FILE` serves one at $REGISTRY, as launchers of many hosts want it.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: registry PATH FILE")
	}
	path := ts.MkAbs(args[0])
	listen := func() (net.Listener, error) { return embedded.ListenUnix(context.Background(), path) }
	if args[0] == "tcp" {
		listen = func() (net.Listener, error) { return embedded.ListenLoopback(context.Background(), "127.0.0.1:0") }
	}
	l, err := listen()
	ts.Check(err)
	if args[0] == "tcp" {
		ts.Setenv("REGISTRY", "consul://"+l.Addr().String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- embedded.Serve(ctx, embedded.Options{Listener: l}) }()
	ts.Defer(func() { cancel(); ts.Check(<-done) })
	var keys map[string]json.RawMessage
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &keys))
	for key, value := range keys {
		put(ts, l.Addr(), "/v1/kv/"+key, value)
	}
}

// holdIndex locks a live key with a session, as a member does: `member PATH APP INSTANCE`.
func holdIndex(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: member PATH APP INSTANCE")
	}
	at := &net.UnixAddr{Name: ts.MkAbs(args[0]), Net: "unix"}
	in, err := registry.ParseInstance(args[2])
	ts.Check(err)
	var session struct{ ID string }
	ts.Check(json.Unmarshal(put(ts, at, "/v1/session/create", []byte(`{"TTL":"600s","Behavior":"delete","LockDelay":"1ms","NodeChecks":[]}`)), &session))
	key := fmt.Sprintf("muster/%s/live/%s/%d", args[1], in.Component, in.Index)
	if got := put(ts, at, "/v1/kv/"+key+"?acquire="+session.ID, []byte("inc")); strings.TrimSpace(string(got)) != "true" {
		ts.Fatalf("%s: not acquired: %s", key, got)
	}
}

func put(ts *testscript.TestScript, at net.Addr, path string, body []byte) []byte {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, at.Network(), at.String())
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://registry"+path, bytes.NewReader(body))
	ts.Check(err)
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("PUT %s: %s %s", path, resp.Status, text)
	}
	return text
}
