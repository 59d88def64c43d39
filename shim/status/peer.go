package status

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Peers are the other instances of a gang, as one of them starts programs there.
type Peers struct {
	Self string // this instance
	// Reach connects to the agent of an instance; the client is the caller's.
	Reach func(ctx context.Context, instance string) (*Client, int, error)
	// Ready waits until this instance's process runs in that generation, and refuses one that is over.
	Ready func(ctx context.Context, generation int) error
}

// ErrNoPeer: the gang has no such instance.
var ErrNoPeer = errors.New("no such instance")

// peerRoute runs a program in the instance that ?to= names; ?generation= is the gang's that the caller is of.
const peerRoute = "POST /v1/peer/exec"

// silenceRoute tells for how long the registry has not answered the agent.
const silenceRoute = "GET /v1/peer/silence"

// peerPath is the path of peerRoute for an instance in a generation.
func peerPath(instance string, generation int) string {
	return "/v1/peer/exec?" + url.Values{"to": {instance}, "generation": {strconv.Itoa(generation)}}.Encode()
}

// peerExec answers a process of this instance. The request is relayed to the peer's agent, unless it is for this one.
func (s Source) peerExec(w http.ResponseWriter, r *http.Request) {
	to := r.URL.Query().Get("to")
	switch {
	case s.Peers == nil:
		s.noPeers(w)
	case to == s.Peers.Self:
		s.ownExec(w, r)
	default:
		s.relay(w, r, to)
	}
}

func (s Source) noPeers(w http.ResponseWriter) {
	const hint = "muster.framework=mpi, horovod or cntk does"
	refuse(w, http.StatusForbidden, "this app's framework starts nothing in other instances", hint)
}

// ownExec runs a program for a peer, once the process of its generation runs here too.
func (s Source) ownExec(w http.ResponseWriter, r *http.Request) {
	if text := r.URL.Query().Get("generation"); text != "" {
		gen, err := strconv.Atoi(text)
		if err != nil {
			refuse(w, http.StatusBadRequest, "generation "+strconv.Quote(text)+" is no number", "")
			return
		}
		if err := s.Peers.Ready(r.Context(), gen); err != nil {
			refuse(w, http.StatusConflict, err.Error(), "")
			return
		}
	}
	s.exec(w, r)
}

// relay joins the caller's connection with one to the peer's agent.
func (s Source) relay(w http.ResponseWriter, r *http.Request, to string) {
	var ask ExecRequest
	if !decode(w, r, &ask) || !upgrades(w, r) {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	peer, gen, err := s.Peers.Reach(ctx, to)
	if errors.Is(err, ErrNoPeer) {
		refuse(w, http.StatusNotFound, err.Error(), "")
		return
	}
	if err != nil {
		refuse(w, http.StatusBadGateway, err.Error(), "")
		return
	}
	defer peer.Close()
	there, err := peer.upgrade(ctx, peerPath(to, gen), ask)
	if err != nil {
		refuse(w, http.StatusBadGateway, to+": "+err.Error(), "")
		return
	}
	defer func() { _ = there.Close() }() // the exchange is over
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error(), "")
		return
	}
	defer func() { _ = here.Close() }() // as above
	if _, err := io.WriteString(here, switching); err != nil {
		return
	}
	// When either side closes, the other is closed too.
	end := sync.OnceFunc(func() { _, _ = there.Close(), here.Close() })
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var copies sync.WaitGroup
	defer copies.Wait()
	copies.Go(func() {
		defer end()
		_, _ = io.Copy(there, buffered) // ends when the caller closes
	})
	_, _ = io.Copy(here, there) // the program's exit comes as a frame
	end()
}

// upgrades tells whether a connection is to become a program's streams, and refuses one that is not.
func upgrades(w http.ResponseWriter, r *http.Request) bool {
	if strings.EqualFold(r.Header.Get("Upgrade"), execProtocol) {
		return true
	}
	w.Header().Set("Upgrade", execProtocol)
	const hint = "Connection: Upgrade, Upgrade: " + execProtocol
	refuse(w, http.StatusUpgradeRequired, "exec answers a connection that is upgraded", hint)
	return false
}

// switching is the answer that makes a connection a program's streams.
const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + execProtocol + "\r\n\r\n"

// PeerHandler is the part of the agent's API that other hosts may ask, with the run's token: its state, samples,
// metrics and logs, how long it has heard nothing of the registry, the roster, and programs in this instance. Whoever
// has no token learns nothing, not even which routes there are.
func PeerHandler(s Source, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/state", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.State()) })
	mux.HandleFunc(silenceRoute, func(w http.ResponseWriter, _ *http.Request) { answer(w, s.Silence()) })
	mux.HandleFunc(rosterRoute, s.roster)
	mux.HandleFunc(logsRoute, s.peerLogs)
	mux.HandleFunc(samplesRoute, s.samples)
	mux.HandleFunc(metricsRoute, s.metrics)
	mux.HandleFunc(signalRoute, s.granted(s.signal))
	mux.HandleFunc(execRoute, s.granted(s.exec))
	mux.HandleFunc(commandRoute, s.granted(s.command))
	mux.HandleFunc(holdRoute, s.granted(s.hold))
	mux.HandleFunc(peerRoute, func(w http.ResponseWriter, r *http.Request) {
		switch to := r.URL.Query().Get("to"); {
		case s.Peers == nil:
			s.noPeers(w)
		case to != s.Peers.Self:
			refuse(w, http.StatusMisdirectedRequest, strconv.Quote(to)+" is not here", "this is "+s.Peers.Self)
		default:
			s.ownExec(w, r)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		notFound(w, r, "GET /v1/state; "+samplesRoute+"; "+metricsRoute+"; "+silenceRoute+"; "+rosterRoute+"; "+
			logsRoute+"; "+peerRoute+
			"; with a grant "+signalRoute+"; "+execRoute+"; "+commandRoute+"; "+holdRoute)
	})
	want := sha256.Sum256([]byte(bearer + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusUnauthorized, "not the token of this run", "")
			return
		}
		welcome(w, r)
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		mux.ServeHTTP(w, r)
	})
}

// grantHeader has the grant of a caller that acts: who reads the app's keys has the token, and may look; who writes
// them makes grants, and may act.
const grantHeader = "Muster-Grant"

// granted answers callers that show a grant, each once.
func (s Source) granted(act http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := registry.ErrNoGrant
		if s.Redeem != nil {
			err = s.Redeem(r.Context(), r.Header.Get(grantHeader))
		}
		switch {
		case err == nil:
			act(w, r)
		case errors.Is(err, registry.ErrNoGrant):
			refuse(w, http.StatusForbidden, "no grant of this app's registry for "+s.State().Instance.Instance,
				"who may write the app's keys makes one")
		default:
			refuse(w, http.StatusServiceUnavailable, "the grant cannot be looked up: "+err.Error(), "ask again, or on "+
				"the instance's own host")
		}
	}
}

const bearer = "Bearer "

// dialPatience bounds the making of a connection.
const dialPatience = 5 * time.Second

// DialPeer makes a client of the agent at a member's Peer, which wants the run's token; it connects at the first call.
// The token is sent to the agent that shows the key of the record, and to nobody else.
func DialPeer(peer, token string) *Client { return dialPeer(peer, token, dialPatience, 0) }

// dialPeer limits the making of a connection, and the time until an answer begins; 0: no limit.
func dialPeer(peer, token string, connects, begins time.Duration) *Client {
	address, key := registry.SplitPeer(peer)
	return &Client{base: "https://agent", path: address, token: token, http: clientOf(&http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if key == "" {
				return nil, errNoKey
			}
			conn, err := (&net.Dialer{Timeout: connects}).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, max(connects, dialPatience))
			defer cancel()
			over := tls.Client(conn, pinned(key))
			if err := over.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return over, nil
		},
		ResponseHeaderTimeout: begins,
	})}
}

// ExecIn is Exec in another instance of the gang, by way of its agent.
func (c *Client) ExecIn(ctx context.Context, instance string, ask ExecRequest, s ExecStreams) (ExecExit, error) {
	x, err := c.execAt(ctx, "/v1/peer/exec?"+url.Values{"to": {instance}}.Encode(), ask, s)
	if err != nil {
		return x, fmt.Errorf("in %s: %w", instance, err)
	}
	return x, nil
}
