package status

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/samples"
)

const token = "6f1b2c"

// peer is worker-1, on its socket and for other hosts.
type peer struct {
	*program
	socket  string
	address string
	ready   chan error // what the instance says of a generation; empty: it waits
}

// servePeer answers as the agent of worker-1, whose programs are main.
func servePeer(t *testing.T, main func(*program, io.Reader, io.Writer, io.Writer) ExecExit) *peer {
	t.Helper()
	a := &api{}
	p := &peer{program: runs(a, main), ready: make(chan error, 1)}
	source := Source{
		State: func() State {
			return State{App: "d1", Instance: Instance{Version: 1, Identity: Identity{Instance: "worker-1"}}}
		},
		Samples: func(since int64) samples.Table {
			return samples.Table{Version: 1, Instance: "worker-1", At: []int64{since + 5}}
		},
		Metrics: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "muster_attempt 1\n")
			return err
		},
		Silence: func() Silence {
			return Silence{Instance: "worker-1", Inc: "i", Gen: 2, Silence: 31, Fenced: true}
		},
		Roster: func(_ context.Context, id string, rank int) ([]byte, string, error) {
			switch {
			case id != "7-ab/c":
				return nil, "", fmt.Errorf("roster %s: %w", id, registry.ErrNotYet)
			case rank == 300:
				return nil, "10.0.0.7:5#the-key_of-it", nil
			}
			return []byte("packed"), "", nil
		},
		Exec: a.exec,
		Stop: func(*time.Duration) error { t.Error("stopped by a peer"); return nil },
		Peers: &Peers{Self: "worker-1", Ready: func(ctx context.Context, _ int) error {
			select {
			case err := <-p.ready:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
	}
	unix, err := Listen(t.TempDir() + "/worker-1.sock")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	id := identity(t)
	p.socket, p.address = unix.Addr().String(), registry.JoinPeer(tcp.Addr().String(), id.Key)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- Serve(ctx, unix, Handler(source)) }()
	go func() { ended <- ServePeers(ctx, tcp, id, PeerHandler(source, token), slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(watchdog):
				t.Error("a server does not end")
			}
		}
	})
	return p
}

// identity is worker-1's.
func identity(t *testing.T) PeerIdentity {
	t.Helper()
	id, err := NewPeerIdentity(token, "d1", "worker-1")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// relayTo makes a's agent one that finds worker-1 behind the client.
func relayTo(a *api, dial func() *Client) {
	a.peers = &Peers{Self: "worker-0", Reach: func(_ context.Context, instance string) (*Client, int, error) {
		if instance != "worker-1" {
			return nil, 0, fmt.Errorf("%w: %s", ErrNoPeer, instance)
		}
		return dial(), 3, nil
	}}
}

func TestExecInAPeer(t *testing.T) {
	for name, dial := range map[string]func(*peer) *Client{
		"on this host": func(p *peer) *Client { return Dial(p.socket) },
		"on another":   func(p *peer) *Client { return DialPeer(p.address, token) },
	} {
		t.Run(name, func(t *testing.T) {
			p := servePeer(t, func(p *program, in io.Reader, out, errs io.Writer) ExecExit {
				n, err := io.Copy(out, in)
				fmt.Fprintln(errs, n, err, <-p.signals)
				return ExecExit{Code: 7}
			})
			p.ready <- nil
			a := serve(t)
			relayTo(a, func() *Client { return dial(p) })
			input := strings.Repeat("0123456789abcdef", 3*execWindow/16) // more than goes ahead
			signals := make(chan int, 1)
			signals <- 10
			var out, errs bytes.Buffer
			x, err := a.client.ExecIn(patience(t), "worker-1", ExecRequest{Argv: []string{"cat"}, Stdin: true},
				ExecStreams{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errs, Signals: signals})
			if err != nil || x != (ExecExit{Code: 7}) {
				t.Fatalf("%+v, %v", x, err)
			}
			if out.String() != input || errs.String() != fmt.Sprintln(len(input), nil, 10) {
				t.Errorf("%d bytes of stdout, stderr %q", out.Len(), errs.String())
			}
		})
	}
}

// Whoever asked is gone: so is what it asked for, on the other host as well.
func TestExecInAPeerHangsUp(t *testing.T) {
	p := servePeer(t, func(p *program, _ io.Reader, out, _ io.Writer) ExecExit {
		fmt.Fprintln(out, "runs")
		<-p.closed
		return ExecExit{}
	})
	p.ready <- nil
	a := serve(t)
	relayTo(a, func() *Client { return DialPeer(p.address, token) })
	ctx, cancel := context.WithCancel(patience(t))
	_, err := a.client.ExecIn(ctx, "worker-1", ExecRequest{Argv: []string{"sleep"}}, ExecStreams{Stdout: writer(func([]byte) { cancel() })})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-p.closed:
	case <-patience(t).Done():
		t.Error("nobody hung up")
	}
}

func TestExecInAPeerIsRefused(t *testing.T) {
	none := func(*program, io.Reader, io.Writer, io.Writer) ExecExit { t.Error("something ran"); return ExecExit{} }
	p := servePeer(t, none)
	a := serve(t)
	ask := ExecRequest{Argv: []string{"true"}}
	refused := func(to, want string) {
		t.Helper()
		if _, err := a.client.ExecIn(patience(t), to, ask, ExecStreams{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	refused("worker-1", "this app's framework starts nothing in other instances; muster.framework=mpi, horovod or cntk does")
	relayTo(a, func() *Client { return DialPeer(p.address, token) })
	refused("worker-9", "no such instance: worker-9")
	refused("../worker-1", "no such instance: ../worker-1")
	p.ready <- errors.New("generation 3 is over")
	refused("worker-1", "worker-1: generation 3 is over")
	relayTo(a, func() *Client { return DialPeer(p.address, "other") })
	refused("worker-1", "not the token of this run")
	relayTo(a, func() *Client { return Dial(p.socket + ".gone") })
	refused("worker-1", "no such file or directory")
}

// What other hosts see: nothing without the run's token, and with it nothing but the routes for peers.
func TestOtherHostsNeedTheToken(t *testing.T) {
	p := servePeer(t, func(*program, io.Reader, io.Writer, io.Writer) ExecExit { return ExecExit{} })
	for _, c := range []struct {
		name, method, path, authorization string
		want                              int
	}{
		{"state", "GET", "/v1/state", "Bearer " + token, http.StatusOK},
		{"no token", "GET", "/v1/state", "", http.StatusUnauthorized},
		{"samples", "GET", "/v1/samples?since=7", "Bearer " + token, http.StatusOK},
		{"samples without", "GET", "/v1/samples", "", http.StatusUnauthorized},
		{"metrics", "GET", "/v1/metrics", "Bearer " + token, http.StatusOK},
		{"metrics without", "GET", "/v1/metrics", "", http.StatusUnauthorized},
		{"silence", "GET", "/v1/peer/silence", "Bearer " + token, http.StatusOK},
		{"silence without", "GET", "/v1/peer/silence", "", http.StatusUnauthorized},
		{"roster", "GET", "/v1/peer/roster/7-ab%2fc?rank=1", "Bearer " + token, http.StatusOK},
		{"roster without", "GET", "/v1/peer/roster/7-ab%2fc?rank=1", "", http.StatusUnauthorized},
		{"roster of no rank", "GET", "/v1/peer/roster/7-ab%2fc?rank=-1", "Bearer " + token, http.StatusBadRequest},
		{"another run's", "GET", "/v1/state", "Bearer 7a0000", http.StatusUnauthorized},
		{"a part of it", "GET", "/v1/state", "Bearer " + token[:5], http.StatusUnauthorized},
		{"more than it", "GET", "/v1/state", "Bearer " + token + "0", http.StatusUnauthorized},
		{"empty", "GET", "/v1/state", "Bearer ", http.StatusUnauthorized},
		{"not as a bearer", "GET", "/v1/state", token, http.StatusUnauthorized},
		{"in the query", "GET", "/v1/state?token=" + token, "", http.StatusUnauthorized},
		{"exec without", "POST", "/v1/peer/exec?to=worker-1", "", http.StatusUnauthorized},
		{"exec without a grant", "POST", "/v1/exec", "Bearer " + token, http.StatusForbidden},
		{"signal without a grant", "POST", "/v1/signal", "Bearer " + token, http.StatusForbidden},
		{"command without a grant", "POST", "/v1/command", "Bearer " + token, http.StatusForbidden},
		{"hold without a grant", "POST", "/v1/hold", "Bearer " + token, http.StatusForbidden},
		{"exec without anything", "POST", "/v1/exec", "", http.StatusUnauthorized},
		{"a route of the socket", "POST", "/v1/adopt", "Bearer " + token, http.StatusNotFound},
		{"logs", "GET", "/v1/logs/stdout", "Bearer " + token, http.StatusOK},
		{"logs without", "GET", "/v1/logs/stdout", "", http.StatusUnauthorized},
		{"another file", "GET", "/v1/logs/..%2fexit.json", "Bearer " + token, http.StatusNotFound},
		{"another folder's side", "GET", "/v1/logs/side-x%2f..%2f..%2fworker-1%2fside-x.stdout", "Bearer " + token, http.StatusNotFound},
		{"no stream of a side", "GET", "/v1/logs/side-x.stdout.times", "Bearer " + token, http.StatusNotFound},
		{"no number of lines", "GET", "/v1/logs/stdout?tail=-7", "Bearer " + token, http.StatusBadRequest},
		{"stop", "POST", "/v1/stop", "Bearer " + token, http.StatusNotFound},
		{"by a detour", "POST", "/v1/peer/exec/../../stop", "Bearer " + token, http.StatusTemporaryRedirect},
		{"by an escape", "POST", "/v1/peer%2f..%2fstop", "Bearer " + token, http.StatusNotFound},
		{"a relay", "POST", "/v1/peer/exec?to=worker-2", "Bearer " + token, http.StatusMisdirectedRequest},
		{"two of them", "POST", "/v1/peer/exec?to=worker-2&to=worker-1", "Bearer " + token, http.StatusMisdirectedRequest},
		{"nobody", "POST", "/v1/peer/exec", "Bearer " + token, http.StatusMisdirectedRequest},
		{"no number", "POST", "/v1/peer/exec?to=worker-1&generation=x", "Bearer " + token, http.StatusBadRequest},
		{"nothing to run", "POST", "/v1/peer/exec?to=worker-1", "Bearer " + token, http.StatusBadRequest},
	} {
		if got := raw(t, p.address, c.method, c.path, c.authorization); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSamplesAndMetricsOfAPeer(t *testing.T) {
	p := servePeer(t, func(*program, io.Reader, io.Writer, io.Writer) ExecExit { return ExecExit{} })
	for _, c := range []*Client{Dial(p.socket), DialPeer(p.address, token)} {
		got, err := c.Samples(t.Context(), 7)
		if err != nil || got.Instance != "worker-1" || len(got.At) != 1 || got.At[0] != 12 {
			t.Errorf("got %+v, %v", got, err)
		}
		var text strings.Builder
		if err := c.Metrics(t.Context(), &text); err != nil || text.String() != "muster_attempt 1\n" {
			t.Errorf("metrics: %q, %v", &text, err)
		}
		c.Close()
	}
}

// raw sends a request as it is written: a client of package http would tidy the path up.
func raw(t *testing.T, peer, method, path, authorization string) int {
	t.Helper()
	address, _ := registry.SplitPeer(peer)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return rawOver(t, conn, peer, method, path, authorization)
}

// rawOver is raw by a connection that there is.
func rawOver(t *testing.T, over net.Conn, peer, method, path, authorization string) int {
	t.Helper()
	_, key := registry.SplitPeer(peer)
	conn := tls.Client(over, pinned(key))
	if err := conn.SetDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: agent\r\nContent-Length: 0\r\n", method, path)
	if authorization != "" {
		fmt.Fprintf(conn, "Authorization: %s\r\n", authorization)
	}
	fmt.Fprint(conn, "\r\n")
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

// A run of old, or a registry that lost it, has none: that is no token, not an empty one.
func TestNoTokenIsNobodys(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	id := identity(t)
	go func() { done <- ServePeers(ctx, l, id, PeerHandler(Source{}, ""), slog.New(slog.DiscardHandler)) }()
	for _, authorization := range []string{"", "Bearer ", "Bearer"} {
		if got := raw(t, registry.JoinPeer(l.Addr().String(), id.Key), "GET", "/v1/state", authorization); got != http.StatusUnauthorized {
			t.Errorf("%q: %d", authorization, got)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A peer's silence is asked in the same way by the socket and from another host.
func TestPeersTellTheirSilence(t *testing.T) {
	p := servePeer(t, func(*program, io.Reader, io.Writer, io.Writer) ExecExit { return ExecExit{} })
	want := Silence{Instance: "worker-1", Inc: "i", Gen: 2, Silence: 31, Fenced: true}
	for name, c := range map[string]*Client{"socket": Dial(p.socket), "another host": DialPeer(p.address, token)} {
		got, err := c.Silence(t.Context())
		if err != nil || got != want {
			t.Errorf("by %s: got %+v, %v, want %+v", name, got, err, want)
		}
		c.Close()
	}
	c := DialPeer(p.address, "another")
	defer c.Close()
	if got, err := c.Silence(t.Context()); err == nil {
		t.Errorf("without the token: got %+v", got)
	}
}

// A peer gives the roster, names the agent that does, or does not have it yet.
func TestPeersGiveTheRoster(t *testing.T) {
	p := servePeer(t, func(*program, io.Reader, io.Writer, io.Writer) ExecExit { return ExecExit{} })
	if got, next, err := AskRoster(t.Context(), p.address, token, "7-ab/c", 20); err != nil || string(got) != "packed" || next != "" {
		t.Errorf("got %q, %q, %v", got, next, err)
	}
	if got, next, err := AskRoster(t.Context(), p.address, token, "7-ab/c", 300); err != nil || got != nil || next != "10.0.0.7:5#the-key_of-it" {
		t.Errorf("sent on: got %q, %q, %v", got, next, err)
	}
	if _, _, err := AskRoster(t.Context(), p.address, token, "8", 20); !errors.Is(err, registry.ErrNotYet) {
		t.Errorf("too early: %v", err)
	}
	if got, _, err := AskRoster(t.Context(), p.address, "another", "7-ab/c", 20); err == nil || errors.Is(err, registry.ErrNotYet) {
		t.Errorf("without the token: got %q, %v", got, err)
	}
}

// A caller acts with a grant, once; one that is another's, or cannot be looked up, lets it do nothing.
func TestActingNeedsAGrant(t *testing.T) {
	grants := map[string]error{"good": nil, "away": errors.New("registry is unreachable")}
	var signals []int
	s := Source{
		State:  func() State { return State{Instance: Instance{Identity: Identity{Instance: "worker-1"}}} },
		Signal: func(n int) error { signals = append(signals, n); return nil },
		Redeem: func(_ context.Context, grant string) error {
			err, ok := grants[grant]
			delete(grants, grant)
			if !ok {
				return registry.ErrNoGrant
			}
			return err
		},
	}
	h := PeerHandler(s, token)
	for _, tt := range []struct {
		grant string
		want  int
	}{{"", 403}, {"bad", 403}, {"good", 200}, {"good", 403}, {"away", 503}} {
		r := httptest.NewRequest(http.MethodPost, "/v1/signal", strings.NewReader(`{"signal": "USR1"}`))
		r.Header.Set("Authorization", bearer+token)
		r.Header.Set(grantHeader, tt.grant)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%q: %d %s, want %d", tt.grant, w.Code, w.Body, tt.want)
		}
	}
	if len(signals) != 1 {
		t.Errorf("%d signals, want one", len(signals))
	}
}
