package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// route is one endpoint. A handler returns the answer or an error: an httpError with its code, any other error as 500,
// as in Consul.
type route struct {
	pattern string
	methods []string
	handle  func(*http.Request) (reply, error)
}

func (s *Server) routes() []route {
	put, get := []string{http.MethodPut}, []string{http.MethodGet}
	return []route{
		{"/v1/kv/", []string{http.MethodGet, http.MethodPut, http.MethodDelete}, s.kv},
		{"/v1/txn", put, s.txn},
		{"/v1/session/create", put, s.sessionCreate},
		{"/v1/session/destroy/", put, s.sessionDestroy},
		{"/v1/session/renew/", put, s.sessionRenew},
		{"/v1/session/info/", get, s.sessionInfo},
		{"/v1/session/list", get, s.sessionList},
		{"/v1/status/leader", get, s.statusLeader},
		{"/v1/agent/self", get, s.agentSelf},
		{"/", nil, notHere},
	}
}

// reply is an answer. Without raw the body is JSON; a nil body is empty.
type reply struct {
	code  int    // 0: 200
	index uint64 // to wait on; 0: not a read
	raw   bool
	body  any // []byte when raw
}

type httpError struct {
	code int
	text string
}

func (e httpError) Error() string { return e.text }

func badRequest(text string) error { return httpError{http.StatusBadRequest, text} }

func tooLarge(format string, args ...any) error {
	return httpError{http.StatusRequestEntityTooLarge, fmt.Sprintf(format, args...)}
}

// notHere answers requests that only a real Consul supports.
func notHere(r *http.Request) (reply, error) {
	return reply{}, httpError{
		http.StatusNotImplemented,
		fmt.Sprintf("%s %s is not in muster's embedded registry; use a real Consul for it", r.Method, r.URL.Path),
	}
}

// answer runs the handler and writes what it returned.
func (s *Server) answer(to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		got, err := s.call(to, w, r)
		code := write(w, r, got, err)
		s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "code", code, "took", time.Since(start))
	})
}

func (s *Server) call(to route, w http.ResponseWriter, r *http.Request) (reply, error) {
	if to.methods != nil && !slices.Contains(to.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(append([]string{http.MethodOptions}, to.methods...), ","))
		return reply{}, httpError{http.StatusMethodNotAllowed, fmt.Sprintf("method %s not allowed", r.Method)}
	}
	return to.handle(r)
}

func write(w http.ResponseWriter, r *http.Request, got reply, err error) int {
	if err != nil {
		code := http.StatusInternalServerError
		if known, ok := errors.AsType[httpError](err); ok {
			code = known.code
		}
		return writeBytes(w, code, "text/plain; charset=utf-8", []byte(err.Error()))
	}
	if got.index > 0 {
		writeIndex(w.Header(), got.index)
	}
	code := got.code
	if code == 0 {
		code = http.StatusOK
	}
	if got.raw {
		// Values may come from a stranger: no browser may run them.
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "sandbox")
		return writeBytes(w, code, "text/plain", got.body.([]byte))
	}
	if got.body == nil {
		w.WriteHeader(code)
		return code
	}
	return writeBytes(w, code, "application/json", encode(got.body, r.URL.Query().Has("pretty")))
}

func writeBytes(w http.ResponseWriter, code int, kind string, body []byte) int {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the reader has gone
	return code
}

func writeIndex(h http.Header, index uint64) {
	h.Set("X-Consul-Index", strconv.FormatUint(index, 10))
	h.Set("X-Consul-KnownLeader", "true")
	h.Set("X-Consul-LastContact", "0")
}

func encode(body any, pretty bool) []byte {
	var b []byte
	var err error
	if pretty {
		b, err = json.MarshalIndent(body, "", "    ")
		b = append(b, '\n')
	} else {
		b, err = json.Marshal(body)
	}
	if err != nil {
		panic(fmt.Sprintf("embedded: answer %T cannot be JSON: %v", body, err)) // our own types only
	}
	return b
}

// printable refuses paths that would be misleading in a log.
func printable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.ContainsFunc(r.URL.Path, func(c rune) bool { return !unicode.IsPrint(c) }) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
