package embedded

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxValue is the largest value and the largest body of a transaction, in bytes (Consul's default
// for kv_max_value_size and txn_max_req_len).
const maxValue = 512 << 10

func (s *Server) kv(r *http.Request) (reply, error) {
	query := r.URL.Query()
	w, err := parseWaiting(query)
	if err != nil {
		return reply{}, err
	}
	key := strings.TrimPrefix(r.URL.Path, "/v1/kv/")
	whole := query.Has("recurse") && r.Method != http.MethodPut || query.Has("keys") && r.Method == http.MethodGet
	if key == "" && !whole {
		return reply{}, badRequest("Missing key name")
	}
	switch {
	case r.Method == http.MethodPut:
		return s.kvPut(r, key, query)
	case r.Method == http.MethodDelete:
		return s.kvDelete(key, query)
	case query.Has("keys"):
		return s.kvKeys(r, key, query, w)
	case query.Has("recurse"):
		return s.kvList(r, key, w)
	default:
		return s.kvGet(r, key, query.Has("raw"), w)
	}
}

func (s *Server) kvGet(r *http.Request, key string, raw bool, w waiting) (reply, error) {
	var found *entry
	index := s.query(r.Context(), w, target{oneKey, key}, func(st *keyStore) (index uint64, ok bool) {
		found, index = st.get(key)
		return index, found != nil
	})
	switch {
	case found == nil:
		return reply{code: http.StatusNotFound, index: index}, nil
	case raw:
		return reply{index: index, raw: true, body: found.Value}, nil
	}
	return reply{index: index, body: []*entry{found}}, nil
}

func (s *Server) kvList(r *http.Request, prefix string, w waiting) (reply, error) {
	var found []*entry
	index := s.query(r.Context(), w, target{allUnder, prefix}, func(st *keyStore) (index uint64, ok bool) {
		found, index = st.list(prefix)
		return index, true
	})
	if len(found) == 0 {
		return reply{code: http.StatusNotFound, index: index}, nil
	}
	return reply{index: index, body: found}, nil
}

func (s *Server) kvKeys(r *http.Request, prefix string, query url.Values, w waiting) (reply, error) {
	separator := query.Get("separator")
	if !query.Has("separator") {
		separator = query.Get("seperator") // Consul once spelt it so and still takes it
	}
	var found []string
	index := s.query(r.Context(), w, target{allUnder, prefix}, func(st *keyStore) (index uint64, ok bool) {
		found, index = st.keys(prefix, separator)
		return index, true
	})
	if len(found) == 0 && prefix != "" {
		return reply{code: http.StatusNotFound, index: index}, nil
	}
	return reply{index: index, body: found}, nil
}

func (s *Server) kvPut(r *http.Request, key string, query url.Values) (reply, error) {
	if err := conflicting(query, "cas", "acquire", "release"); err != nil {
		return reply{}, err
	}
	op := operation{Verb: verbSet, Key: key}
	var err error
	if query.Has("flags") {
		if op.Flags, err = strconv.ParseUint(query.Get("flags"), 10, 64); err != nil {
			return reply{}, err
		}
	}
	switch {
	case query.Has("cas"):
		op.Verb = verbCAS
		if op.Index, err = strconv.ParseUint(query.Get("cas"), 10, 64); err != nil {
			return reply{}, err
		}
	case query.Has("acquire"):
		op.Verb, op.Session = verbLock, query.Get("acquire")
	case query.Has("release"):
		op.Verb, op.Session = verbUnlock, query.Get("release")
	}
	if op.Value, err = readValue(r); err != nil {
		return reply{}, err
	}
	return s.apply(op)
}

func readValue(r *http.Request) ([]byte, error) {
	refused := func(size string) error {
		return tooLarge("Request body(%s bytes) too large, max size: %d bytes.", size, maxValue)
	}
	if r.ContentLength > maxValue {
		return nil, refused(strconv.FormatInt(r.ContentLength, 10))
	}
	value, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxValue))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refused("more")
	}
	if len(value) == 0 {
		return nil, err // stored without a value, shown as null
	}
	return value, err
}

func (s *Server) kvDelete(key string, query url.Values) (reply, error) {
	if err := conflicting(query, "recurse", "cas"); err != nil {
		return reply{}, err
	}
	op := operation{Verb: verbDelete, Key: key}
	switch {
	case query.Has("recurse"):
		op.Verb = verbDeleteTree
	case query.Has("cas"):
		op.Verb = verbDeleteCAS
		var err error
		if op.Index, err = strconv.ParseUint(query.Get("cas"), 10, 64); err != nil {
			return reply{}, err
		}
	}
	return s.apply(op)
}

// apply answers true, or false if the state of the key refuses the operation.
func (s *Server) apply(op operation) (reply, error) {
	var ok bool
	var err error
	s.write(func(st *keyStore, now time.Time) (touched changes) {
		ok, touched, err = st.apply(now, op)
		return touched
	})
	if err != nil {
		return reply{}, fmt.Errorf("raft apply failed: %w", err)
	}
	return reply{body: ok}, nil
}

// conflicting refuses two of the flags in one request.
func conflicting(query url.Values, flags ...string) error {
	seen := 0
	for _, flag := range flags {
		if query.Has(flag) {
			seen++
		}
	}
	if seen > 1 {
		return badRequest("Conflicting flags: " + query.Encode())
	}
	return nil
}
