package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sessionBody is the body of /v1/session/create; missing fields have Consul's defaults.
type sessionBody struct {
	Name, Node    string
	LockDelay     lockDelay
	Behavior      behavior
	TTL           string
	NodeChecks    []string
	ServiceChecks []serviceCheck
	Checks        []string
}

// lockDelay is a duration in Consul's spellings: "15s", or a number of nanoseconds; a value below a microsecond, in
// either form, means seconds. 0 is no delay; only a missing field means 15 s.
type lockDelay time.Duration

// UnmarshalJSON never leaves the delay as it was, but for null.
func (l *lockDelay) UnmarshalJSON(b []byte) error {
	var sent any
	if err := json.Unmarshal(b, &sent); err != nil || sent == nil {
		return err
	}
	var d time.Duration
	switch v := sent.(type) {
	case string:
		var err error
		if d, err = time.ParseDuration(v); err != nil {
			return err
		}
	case float64:
		d = time.Duration(v)
	}
	if d < 1000 {
		d *= time.Second
	}
	*l = lockDelay(d)
	return nil
}

func (s *Server) sessionCreate(r *http.Request) (reply, error) {
	want := sessionBody{
		Node:       nodeName,
		LockDelay:  lockDelay(defaultLockDelay),
		Behavior:   releaseKeys,
		NodeChecks: []string{nodeCheck},
		Checks:     []string{nodeCheck},
	}
	err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxValue)).Decode(&want)
	if err != nil && !errors.Is(err, io.EOF) {
		return reply{}, badRequest("Request decode failed: " + err.Error())
	}
	want.settleChecks()
	id, err := s.createSession(sessionInfo{
		Name: want.Name, Node: want.Node, LockDelay: time.Duration(want.LockDelay), Behavior: want.Behavior,
		TTL:        want.TTL,
		NodeChecks: want.NodeChecks, ServiceChecks: want.ServiceChecks, Checks: want.Checks,
	})
	if err != nil {
		return reply{}, err
	}
	return reply{body: struct{ ID string }{id}}, nil
}

// settleChecks chooses between the old field Checks and the new NodeChecks, which both have a default: an empty list in
// either means no check at all.
func (b *sessionBody) settleChecks() {
	switch {
	case len(b.Checks) == 0:
		b.NodeChecks = []string{}
	case len(b.Checks) == 1 && b.Checks[0] == nodeCheck, len(b.NodeChecks) == 0:
		b.Checks = nil
	}
}

func (s *Server) sessionDestroy(r *http.Request) (reply, error) {
	id, err := sessionID(r, "/v1/session/destroy/")
	if err != nil {
		return reply{}, err
	}
	s.write(func(st *keyStore, now time.Time) changes { return st.destroy(now, id) })
	return reply{body: true}, nil
}

func (s *Server) sessionRenew(r *http.Request) (reply, error) {
	id, err := sessionID(r, "/v1/session/renew/")
	if err != nil {
		return reply{}, err
	}
	var found *sessionInfo
	s.look(func(st *keyStore) { found = st.renew(time.Now(), id) })
	if found == nil {
		return reply{}, httpError{http.StatusNotFound, fmt.Sprintf("Session id '%s' not found", id)}
	}
	return reply{body: []*sessionInfo{found}}, nil
}

func (s *Server) sessionInfo(r *http.Request) (reply, error) {
	w, err := parseWaiting(r.URL.Query())
	if err != nil {
		return reply{}, err
	}
	id, err := sessionID(r, "/v1/session/info/")
	if err != nil {
		return reply{}, err
	}
	var found *sessionInfo
	index := s.query(r.Context(), w, target{oneSession, id}, func(st *keyStore) (index uint64, ok bool) {
		found, index = st.session(id)
		return index, found != nil
	})
	list := []*sessionInfo{}
	if found != nil {
		list = append(list, found)
	}
	return reply{index: index, body: list}, nil
}

func (s *Server) sessionList(*http.Request) (reply, error) {
	list := []*sessionInfo{}
	s.look(func(st *keyStore) {
		for _, l := range st.sessions {
			found := l.sessionInfo
			list = append(list, &found)
		}
	})
	slices.SortFunc(list, func(a, b *sessionInfo) int { return strings.Compare(a.ID, b.ID) })
	return reply{body: list}, nil
}

func sessionID(r *http.Request, path string) (string, error) {
	id := strings.TrimPrefix(r.URL.Path, path)
	if id == "" {
		return "", badRequest("Missing session")
	}
	return id, nil
}
