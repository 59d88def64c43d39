package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
)

// rosterRoute gives the packed roster of an id to the peer of that rank. 200: the bytes. 202: this agent does not have
// it yet. 307: the agent at Location has it for that rank.
const rosterRoute = "GET /v1/peer/roster/{id}"

func rosterPath(id string, rank int) string {
	return "/v1/peer/roster/" + url.PathEscape(id) + "?rank=" + strconv.Itoa(rank)
}

func (s Source) roster(w http.ResponseWriter, r *http.Request) {
	rank, err := strconv.Atoi(r.URL.Query().Get("rank"))
	if err != nil || rank < 0 {
		refuse(w, http.StatusBadRequest, "rank "+strconv.Quote(r.URL.Query().Get("rank"))+" is no rank", "")
		return
	}
	packed, next, err := s.Roster(r.Context(), r.PathValue("id"), rank)
	switch {
	case errors.Is(err, registry.ErrNotYet):
		w.WriteHeader(http.StatusAccepted)
	case err != nil:
		refuse(w, http.StatusInternalServerError, err.Error(), "")
	case next != "":
		address, key := registry.SplitPeer(next)
		w.Header().Set("Location", "https://"+registry.JoinPeer(address+rosterPath(r.PathValue("id"), rank), key))
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(packed)))
		_, _ = w.Write(packed) // fails when the caller has hung up
	}
}

// How long a peer may take to accept a connection, and then until its answer begins: it may hold the question
// for 10 s.
const (
	rosterConnects = 2500 * time.Millisecond
	rosterBegins   = 15 * time.Second
)

// mostRoster bounds a packed roster, in bytes.
const mostRoster = 64 << 20

// AskRoster asks the agent at a member's Peer for the packed roster of an id on behalf of a rank. next is the Peer to
// ask instead. The error is registry.ErrNotYet if the agent does not have it yet.
func AskRoster(
	ctx context.Context, peer, token, id string, rank int,
) (packed []byte, next string, err error) {
	c := dialPeer(peer, token, rosterConnects, rosterBegins)
	defer c.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+rosterPath(id, rank), http.NoBody)
	if err != nil {
		return nil, "", err
	}
	c.identify(req)
	r, err := c.http.Transport.RoundTrip(req) // follows no redirect
	if err != nil {
		return nil, "", fmt.Errorf("agent at %s: %w", c.path, err)
	}
	defer func() { _ = r.Body.Close() }() // read to the end
	switch r.StatusCode {
	case http.StatusOK:
		if r.ContentLength < 0 || r.ContentLength > mostRoster {
			return nil, "", fmt.Errorf("agent at %s: a roster of %d bytes", c.path, r.ContentLength)
		}
		packed = make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, packed); err != nil {
			return nil, "", fmt.Errorf("agent at %s: %w", c.path, err)
		}
		return packed, "", nil
	case http.StatusAccepted:
		return nil, "", fmt.Errorf("agent at %s: %w", c.path, registry.ErrNotYet)
	case http.StatusTemporaryRedirect:
		at, err := r.Location()
		if err != nil {
			return nil, "", fmt.Errorf("agent at %s: %w", c.path, err)
		}
		return nil, registry.JoinPeer(at.Host, at.Fragment), nil
	}
	return nil, "", c.failure(r)
}
