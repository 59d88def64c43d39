package consulhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

// watchdog ends a test that hangs; no promise is measured with it. Slow cases take up to 40 s.
const watchdog = time.Minute

// lab is one case at work: a client in two forms and a prefix of its own for the keys.
type lab struct {
	*testing.T
	ctx    context.Context
	url    string
	web    *http.Client
	api    *api.Client
	prefix string
}

func newLab(t *testing.T, s Server) *lab {
	t.Helper()
	web := s.Client
	if web == nil {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		web = &http.Client{Transport: transport}
	}
	c, err := api.NewClient(&api.Config{Address: s.URL, HttpClient: web})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	name := url.PathEscape(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	l := &lab{T: t, ctx: ctx, url: s.URL, web: web, api: c, prefix: "conformance/" + name + "/"}
	l.must("PUT", "/v1/kv/"+l.prefix+"0", "the prefix has been written to")
	l.must("DELETE", "/v1/kv/"+l.prefix+"?recurse", "")
	return l
}

// answer is an HTTP answer read to its end.
type answer struct {
	code  int
	index uint64 // X-Consul-Index, 0 without
	head  http.Header
	body  string
}

func (l *lab) do(method, path, body string) answer {
	l.Helper()
	a, err := l.try(l.ctx, method, path, strings.NewReader(body))
	if err != nil {
		l.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (l *lab) try(ctx context.Context, method, path string, body io.Reader) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.url+path, body)
	if err != nil {
		return answer{}, err
	}
	resp, err := l.web.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	a := answer{code: resp.StatusCode, head: resp.Header, body: string(b)}
	if text := resp.Header.Get("X-Consul-Index"); text != "" {
		a.index, err = strconv.ParseUint(text, 10, 64)
	}
	return a, err
}

// must is do for requests that are to succeed.
func (l *lab) must(method, path, body string) answer {
	l.Helper()
	a := l.do(method, path, body)
	if a.code != http.StatusOK {
		l.Fatalf("%s %s: got %d %s, want 200", method, path, a.code, a.body)
	}
	return a
}

// k is the full name of a key of this case; kv its path in the API.
func (l *lab) k(name string) string  { return l.prefix + name }
func (l *lab) kv(name string) string { return "/v1/kv/" + l.prefix + name }

func (l *lab) put(name, value string) {
	l.Helper()
	if got := strings.TrimSpace(l.must("PUT", l.kv(name), value).body); got != "true" {
		l.Fatalf("put %s: got %s", name, got)
	}
}

// get returns the key, or nil.
func (l *lab) get(name string) *api.KVPair {
	l.Helper()
	p, _, err := l.api.KV().Get(l.k(name), (&api.QueryOptions{RequireConsistent: true}).WithContext(l.ctx))
	if err != nil {
		l.Fatalf("get %s: %v", name, err)
	}
	return p
}

// have is get for a key that must be there.
func (l *lab) have(name string) *api.KVPair {
	l.Helper()
	p := l.get(name)
	if p == nil {
		l.Fatalf("key %s is missing", name)
	}
	return p
}

func (l *lab) gone(names ...string) {
	l.Helper()
	for _, name := range names {
		if p := l.get(name); p != nil {
			l.Errorf("key %s: got %q, want none", name, p.Value)
		}
	}
}

// want compares: got before want.
func want[T comparable](l *lab, what string, got, want T) {
	l.Helper()
	if got != want {
		l.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// session makes a session with the TTL of the protocol and no health checks.
func (l *lab) session(behavior, lockDelay string) string {
	l.Helper()
	return l.sessionOf(fmt.Sprintf(`{"TTL":"10s","Behavior":%q,"LockDelay":%q,"NodeChecks":[],"Name":"conformance"}`,
		behavior, lockDelay))
}

func (l *lab) sessionOf(body string) string {
	l.Helper()
	var made struct{ ID string }
	l.decode(l.must("PUT", "/v1/session/create", body).body, &made)
	return made.ID
}

func (l *lab) destroy(session string) {
	l.Helper()
	want(l, "destroy", strings.TrimSpace(l.must("PUT", "/v1/session/destroy/"+session, "").body), "true")
}

func (l *lab) decode(body string, into any) {
	l.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		l.Fatalf("decode %s: %v", body, err)
	}
}

// pending is a reader that may be waiting.
type pending chan result

type result struct {
	answer
	err error
}

// read starts a GET that waits; the answer comes by answered. That it did wait shows in what it
// answers: the change made after it was sent, never what was there before.
func (l *lab) read(path string) pending {
	p := make(pending, 1)
	go func() {
		a, err := l.try(l.ctx, "GET", path, nil)
		p <- result{a, err}
	}()
	return p
}

func (l *lab) answered(p pending) answer {
	l.Helper()
	r := <-p // ends with l.ctx at the latest
	if r.err != nil {
		l.Fatal(r.err)
	}
	return r.answer
}
