package registrytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// BenchmarkBarrier measures from the last member's arrival to the last release seen, on one real Consul
// server on this machine, beside the obvious way: every member watches the prefix in which all arrive.
//
//	go test -run '^$' -bench Barrier -benchtime 3x ./registry/registrytest
func BenchmarkBarrier(b *testing.B) {
	raiseFiles(b)
	for _, n := range []int{200, 1000} {
		b.Run(fmt.Sprintf("directive/%d", n), func(b *testing.B) { benchDirective(b, n) })
		b.Run(fmt.Sprintf("prefix/%d", n), func(b *testing.B) { benchPrefix(b, n) })
	}
}

// raiseFiles makes room for two connections a member.
func raiseFiles(b *testing.B) {
	b.Helper()
	var l syscall.Rlimit
	must(b, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	l.Cur = l.Max
	must(b, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l))
}

func benchDirective(b *testing.B, n int) {
	a := newApp(b, consulserver.Start(b, consulserver.Options{}), component("worker", n, registry.ScopeGang))
	a.facts.GangBudget.Max = -1
	all := make(gang, n)
	parallel(n, func(i int) {
		all[i] = a.agent(b, fmt.Sprintf("worker-%d", i))
		if err := all[i].tryJoin(); err != nil {
			b.Error(err)
		}
	})
	if b.Failed() {
		b.FailNow()
	}
	gen := 1
	var total time.Duration
	for b.Loop() {
		parallel(n-1, func(i int) { all[i].told(gen, registry.ActWait); all[i].ready(gen) })
		last := all[n-1]
		last.told(gen, registry.ActWait)
		began := time.Now()
		last.ready(gen)
		parallel(n, func(i int) { all[i].told(gen, registry.ActRun) })
		total += time.Since(began)
		last.fail(gen, registry.ClassApp) // the next generation
		gen++
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/barrier")
}

func benchPrefix(b *testing.B, n int) {
	s := consulserver.Start(b, consulserver.Options{})
	members := make([]*http.Client, n)
	for i := range members {
		members[i] = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 2}}
		b.Cleanup(members[i].CloseIdleConnections)
	}
	record := bytes.Repeat([]byte("x"), 400) // what a member publishes
	round := 0
	var total time.Duration
	for b.Loop() {
		round++
		base := fmt.Sprintf("http://%s/v1/kv/bench/%d/", s.HTTPAddr, round)
		arrive := func(i int) {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPut, fmt.Sprintf("%s%d", base, i), bytes.NewReader(record))
			must(b, err)
			resp, err := members[i].Do(req)
			must(b, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			must(b, resp.Body.Close())
		}
		parallel(n-1, arrive)
		var watching, released sync.WaitGroup
		watching.Add(n - 1)
		released.Add(n - 1)
		for i := range n - 1 {
			go func() {
				defer released.Done()
				watchPrefix(b, members[i], base, n, watching.Done)
			}()
		}
		watching.Wait()
		began := time.Now()
		arrive(n - 1)
		released.Wait()
		total += time.Since(began)
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/barrier")
}

// watchPrefix blocks on the prefix until n keys are there; armed is called once it has read once.
func watchPrefix(b *testing.B, c *http.Client, base string, n int, armed func()) {
	index := "0"
	for {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, base+"?recurse&wait=60s&index="+index, nil)
		if err != nil {
			b.Error(err)
			return
		}
		resp, err := c.Do(req)
		if err != nil {
			b.Error(err)
			return
		}
		var keys []struct{ Key string }
		err = json.NewDecoder(resp.Body).Decode(&keys)
		_ = resp.Body.Close()
		if err != nil {
			b.Error(err)
			return
		}
		if index == "0" {
			armed()
		}
		if index = resp.Header.Get("X-Consul-Index"); len(keys) == n {
			return
		}
	}
}

func parallel(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
