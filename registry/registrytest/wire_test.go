package registrytest_test

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// wire stands between one client and the registry. It can lose the answer to a request that was done, and
// hold a request back until the test lets it go.
type wire struct {
	address string

	mu   sync.Mutex
	meet func(r *http.Request, body string) *encounter
}

// encounter is what the wire does to a request that was met.
type encounter struct {
	lose bool          // the answer; the client sees a broken connection
	hold chan struct{} // before it is forwarded
	code chan int      // the registry's answer
}

func (w *wire) URL() string { return w.address }

// newWire forwards to the server.
func newWire(t testing.TB, s server) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{address: "consul://" + l.Addr().String()}
	transport := &http.Transport{DialContext: dialer(s.URL()), MaxIdleConnsPerHost: 8}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "registry"}) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	web := &http.Server{Handler: w.handler(proxy)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(l) }) // ends with http.ErrServerClosed
	t.Cleanup(func() {
		_ = web.Close()
		transport.CloseIdleConnections()
		serving.Wait()
	})
	return w
}

// when sets what happens to requests: meet answers nil for those that pass.
func (w *wire) when(meet func(r *http.Request, body string) *encounter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meet = meet
}

func (w *wire) handler(proxy http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.mu.Lock()
		var e *encounter
		if w.meet != nil {
			e = w.meet(r, string(body))
		}
		w.mu.Unlock()
		if e == nil {
			proxy.ServeHTTP(rw, r)
			return
		}
		if e.hold != nil {
			<-e.hold
		}
		answer := &recorder{header: http.Header{}}
		// The client may have gone: the request is done all the same.
		proxy.ServeHTTP(answer, r.Clone(withoutCancel(r)))
		if e.code != nil {
			e.code <- answer.code
		}
		if e.lose {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(rw.Header(), answer.header)
		rw.WriteHeader(answer.code)
		_, _ = rw.Write(answer.body.Bytes()) // the client may have gone
	})
}

// isTxn tells that a request is a transaction with a write of the key.
func isTxn(r *http.Request, body, verb, key string) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/txn") && strings.Contains(body, `"Verb":"`+verb+`","Key":"muster/`+key+`"`)
}

type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
