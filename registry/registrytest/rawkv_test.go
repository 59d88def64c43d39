package registrytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// raw talks to the registry as nobody of the gang would: it ends other people's sessions.
type raw struct {
	t      testing.TB
	client *http.Client
	base   string
}

func rawOf(t testing.TB, url string) raw {
	t.Helper()
	r := raw{t: t, client: &http.Client{Transport: &http.Transport{DialContext: dialer(url)}}, base: "http://registry/v1"}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// dialer connects to the registry whatever the request's address says.
func dialer(url string) func(context.Context, string, string) (net.Conn, error) {
	network, address := "tcp", strings.TrimPrefix(url, "consul://")
	if path, ok := strings.CutPrefix(url, "unix:"); ok {
		network, address = "unix", path
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
}

func (r raw) do(method, path string) (code int, index string, body []byte) {
	r.t.Helper()
	return r.send(method, path, nil)
}

func (r raw) send(method, path string, value io.Reader) (code int, index string, body []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(soon(r.t), method, r.base+path, value)
	must(r.t, err)
	resp, err := r.client.Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	must(r.t, err)
	return resp.StatusCode, resp.Header.Get("X-Consul-Index"), body
}

type entry struct {
	Session string
	Value   []byte
}

// get reads a key; ok is false when it does not exist.
func (r raw) get(key string) (e entry, index string, ok bool) {
	r.t.Helper()
	return r.read("/kv/muster/" + key)
}

// next waits until the key differs from what was read at index.
func (r raw) next(key, index string) (e entry, now string, ok bool) {
	r.t.Helper()
	return r.read(fmt.Sprintf("/kv/muster/%s?wait=25s&index=%s", key, index))
}

func (r raw) read(path string) (entry, string, bool) {
	r.t.Helper()
	code, index, body := r.do(http.MethodGet, path)
	if code == http.StatusNotFound {
		return entry{}, index, false
	}
	var list []entry
	if err := json.Unmarshal(body, &list); err != nil || len(list) != 1 {
		r.t.Fatalf("%s: %d %s", path, code, body)
	}
	return list[0], index, true
}

// until waits until the key is as wanted.
func (r raw) until(key string, want func(e entry, ok bool) bool) entry {
	r.t.Helper()
	ctx := soon(r.t)
	e, index, ok := r.get(key)
	for !want(e, ok) {
		if ctx.Err() != nil {
			r.t.Fatalf("%s does not become as wanted: %+v", key, e)
		}
		e, index, ok = r.next(key, index)
	}
	return e
}

// put writes a key as it is.
func (r raw) put(key string, value []byte) {
	r.t.Helper()
	if code, _, body := r.send(http.MethodPut, "/kv/muster/"+key, bytes.NewReader(value)); code != http.StatusOK {
		r.t.Fatalf("put %s: %d %s", key, code, body)
	}
}

// keys lists the keys under a prefix.
func (r raw) keys(prefix string) (names []string) {
	r.t.Helper()
	code, _, body := r.do(http.MethodGet, "/kv/muster/"+prefix+"?keys")
	if code == http.StatusNotFound {
		return nil
	}
	must(r.t, json.Unmarshal(body, &names))
	return names
}

// destroy ends a session.
func (r raw) destroy(session string) {
	r.t.Helper()
	if code, _, body := r.do(http.MethodPut, "/session/destroy/"+session); code != http.StatusOK {
		r.t.Fatalf("destroy %s: %d %s", session, code, body)
	}
}

// record stores a record as nobody of the gang would.
func (r raw) record(key string, v any) {
	r.t.Helper()
	body, err := json.Marshal(v)
	must(r.t, err)
	r.put(key, body)
}

// renewing renews a session until the test ends, or until it has ended.
func (r raw) renewing(session string) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for code := http.StatusOK; code == http.StatusOK && ctx.Err() == nil; time.Sleep(time.Second) {
			code, _, _ = r.do(http.MethodPut, "/session/renew/"+session)
		}
	})
	r.t.Cleanup(func() {
		stop()
		work.Wait()
	})
}
