package registrytest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// noise is a packed definition that no registry could make smaller.
func noise(t testing.TB, seed byte, bytes int) string {
	t.Helper()
	raw := make([]byte, bytes*3/4)
	_, err := io.ReadFull(rand.NewChaCha8([32]byte{seed}), raw)
	must(t, err)
	return base64.StdEncoding.EncodeToString(raw)
}

func defined(def string) option { return func(g *agent) { g.me.Record.Def = def } }

func (g *agent) definition() (registry.AppRecord, string) {
	g.t.Helper()
	record := g.status().App
	def, err := g.client.Definition(soon(g.t), g.me.App, record)
	must(g.t, err)
	return record, def
}

// largeDefinition: one of 2 MB is founded and read back, a new run's takes its place, and both are forgotten. What
// a founder that died has left of it, or somebody else has put there, does no harm.
func largeDefinition(t *testing.T, s server) {
	a := newApp(t, s)
	first, second := noise(t, 1, 2<<20), noise(t, 2, 400_000)
	kv := rawOf(t, s.URL())
	defs := a.facts.App + "/def/" + registry.DefID(first) + "/"
	kv.put(defs+"0", registry.CutDef(first)[0])
	kv.put(defs+"1", []byte("not this"))
	all := a.assemble(t, 1, defined(first))
	record, def := all[0].definition()
	if record.Def != "" || record.DefID == "" || def != first {
		t.Errorf("%d bytes in the record, definition %q of %d bytes, want it apart, %d bytes", len(record.Def), record.DefID, len(def), len(first))
	}
	all[0].finish(1)
	all[1].finish(1)
	all.each(func(g *agent) { g.told(1, registry.ActStop) })
	all.each((*agent).leave)

	a.facts.Run, a.facts.Digest = "2", "digest-2"
	again := a.assemble(t, 2, func(g *agent) { g.me.NewRun = true }, defined(second))
	if _, def := again[0].definition(); def != second {
		t.Errorf("the new run's definition has %d bytes, want %d", len(def), len(second))
	}
	if _, err := again[0].client.Definition(soon(t), a.facts.App, record); !errors.Is(err, registry.ErrDefinitionDiffers) {
		t.Errorf("the old run's definition: %v, want it gone", err)
	}
	again[0].finish(2)
	again[1].finish(2)
	again.each(func(g *agent) { g.told(2, registry.ActStop) })
	again.each((*agent).leave)
	must(t, again[0].client.Forget(soon(t), a.facts.App))
	if left := kv.keys(a.facts.App + "/"); len(left) > 0 {
		t.Errorf("after forget: %v", left)
	}
}

// claimedMeanwhile: between a newcomer's look at an unfinished run that nobody is in, and its new run, somebody
// claims an index of the unfinished one. The new run does not begin.
func claimedMeanwhile(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	all.each(func(g *agent) { g.fail(1, registry.ClassLauncher) })
	all.each((*agent).leave)

	gen := all[0].status().Directive.Gen
	if all[0].status().Directive.Act == registry.ActRun { // nobody was left to rebuild it: a newcomer does
		gen++
	}
	back := a.agent(t, "worker-1")
	// A registry of its own that lets the other one claim right before the new run's transaction.
	between := interposed(t, s, sync.OnceFunc(func() {
		if err := back.tryJoin(); err != nil {
			t.Error(err)
		}
	}), a.facts.App)
	b := *a
	b.url, b.facts.Run = between, "2"
	err := b.agent(t, "worker-0", func(g *agent) { g.me.NewRun = true }).tryJoin()
	if r, ok := errors.AsType[*conductor.RunError](err); !ok || r.Have != "1" {
		t.Errorf("join: %v, want run 1 to go on", err)
	}
	if back.membership == nil {
		t.Fatal("nothing was claimed meanwhile: no new run was tried")
	}
	if d := back.membership.Directive(); d.Run != "1" {
		t.Errorf("directive %+v", d)
	}
	append(gang{back}, a.agent(t, "worker-0").join(), a.agent(t, "ps-0").join()).release(gen)
}

// interposed hands requests on to a server, and does something before the first transaction that writes the app's
// record.
func interposed(t testing.TB, s server, before func(), app string) string {
	t.Helper()
	transport := &http.Transport{DialContext: dialer(s.URL())}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if text := string(body); r.URL.Path == "/v1/txn" && strings.Contains(text, `"cas","Key":"muster/`+app+`/app"`) {
			before()
		}
		out := r.Clone(context.WithoutCancel(r.Context()))
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", "registry", ""
		out.Body = io.NopCloser(strings.NewReader(string(body)))
		resp, err := transport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // the reader has gone
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	return "consul://" + front.Listener.Addr().String()
}
