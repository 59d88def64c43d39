package client

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// negotiation is the way to a ResourceManager that may want a ticket (SPNEGO). It asks without one first: a cluster
// without Kerberos wants none.
type negotiation struct {
	http.RoundTripper
	// Show adds a ticket to a request.
	Show func(*http.Request) error

	mu     sync.Mutex
	wanted bool   // it has asked for a ticket
	failed error  // why none was shown last
	user   string // whom it takes the ticket for; empty: it has not said
}

// RoundTrip sends a request, once more where the answer is that a ticket is wanted.
func (n *negotiation) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.wants() {
		return n.shown(r, nil)
	}
	answer, err := n.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || !asksForTicket(answer.Header) {
		return answer, err
	}
	return n.shown(r, answer)
}

func asksForTicket(h http.Header) bool {
	for _, way := range h.Values("WWW-Authenticate") {
		if strings.HasPrefix(strings.ToLower(way), "negotiate") {
			return true
		}
	}
	return false
}

func (n *negotiation) wants() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wanted
}

// shown sends a request with a ticket. Where there is none, the answer of before stands, if there was one.
func (n *negotiation) shown(r *http.Request, before *http.Response) (*http.Response, error) {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	err := n.Show(again)
	n.mu.Lock()
	n.wanted, n.failed = true, err
	n.mu.Unlock()
	if err != nil {
		if before != nil {
			return before, nil
		}
		return n.RoundTripper.RoundTrip(r)
	}
	if before != nil {
		_ = before.Body.Close() // nobody reads it
	}
	answer, err := n.RoundTripper.RoundTrip(again)
	if err == nil {
		n.takenFor(answer)
	}
	return answer, err
}

// takenFor notes the user's name that the cluster makes of a principal: Hadoop writes it into a cookie.
func (n *negotiation) takenFor(answer *http.Response) {
	for _, cookie := range answer.Cookies() {
		if cookie.Name != "hadoop.auth" {
			continue
		}
		for part := range strings.SplitSeq(strings.Trim(cookie.Value, `"`), "&") {
			if name, ok := strings.CutPrefix(part, "u="); ok && name != "" {
				n.mu.Lock()
				n.user = name
				n.mu.Unlock()
			}
		}
	}
}

// said is whom the cluster takes us for, and why no ticket was shown.
func (n *negotiation) said() (user string, failed error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, err := url.QueryUnescape(n.user); err == nil {
		return name, n.failed
	}
	return n.user, n.failed
}
