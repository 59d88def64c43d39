package consul

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// arrivals is a registry in which the members of a generation become ready one by one. A reading's index is how many
// were, and one.
type arrivals struct {
	prefix string
	every  time.Duration
	order  []int // indexes of the component worker
	began  time.Time
	listed int // names in all answers
}

// ready is how many are there.
func (a *arrivals) ready() int { return min(int(time.Since(a.began)/a.every), len(a.order)) }

func (a *arrivals) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	index, _ := strconv.Atoi(q.Get("index")) // none: 0
	wait, _ := time.ParseDuration(q.Get("wait"))
	need := index // arrivals before the answer
	one := -1
	if name, ok := strings.CutPrefix(r.URL.Path, "/v1/kv/"+a.prefix+"worker/"); ok {
		i, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		one = slices.Index(a.order, i)
		need = max(need, one+1)
	}
	if missing := time.Until(a.began.Add(time.Duration(need) * a.every)); index > 0 && missing > 0 {
		select {
		case <-time.After(min(missing, wait)):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	var names []string
	for at, i := range a.order[:a.ready()] {
		if one < 0 || at == one {
			names = append(names, fmt.Sprintf("%sworker/%d", a.prefix, i))
		}
	}
	return a.answer(r, names, one < 0)
}

func (a *arrivals) answer(r *http.Request, names []string, list bool) (*http.Response, error) {
	var body any = names
	code := http.StatusOK
	if !list {
		pairs := make([]api.KVPair, len(names))
		for i := range names {
			pairs[i].Key = names[i]
		}
		body = pairs
	}
	if len(names) == 0 {
		code = http.StatusNotFound
	}
	a.listed += len(names)
	httptrace.ContextClientTrace(r.Context()).GotFirstResponseByte()
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Body: io.NopCloser(strings.NewReader(string(text))),
		Header: http.Header{"X-Consul-Index": {strconv.Itoa(a.ready() + 1)}},
	}, err
}

// TestReadingsOfABarrier: what a conductor reads until all members are ready grows about as the gang does, and the last
// arrival is seen at once.
func TestReadingsOfABarrier(t *testing.T) {
	for _, n := range []int{1000, 5000} {
		synctest.Test(t, func(t *testing.T) {
			orders := map[string][]int{"random": rand.Perm(n), "ascending": make([]int, n), "descending": make([]int, n)}
			for i := range n {
				orders["ascending"][i], orders["descending"][i] = i, n-1-i
			}
			for name, order := range orders {
				const every = 10 * time.Millisecond
				k := keysOf("app")
				a := &arrivals{prefix: k.ready(1), every: every, order: order, began: time.Now()}
				late := watchArrivals(t, k, a)
				t.Logf("%d members, %s: %d names read", n, name, a.listed)
				if most := 25 * n; a.listed > most {
					t.Errorf("%d members, %s: %d names read, want at most %d", n, name, a.listed, most)
				}
				if late > paceMany {
					t.Errorf("%d members, %s: the last was seen after %s", n, name, late)
				}
			}
		})
	}
}

// watchArrivals watches until all are ready. It returns how long after the last arrival that was known.
func watchArrivals(t *testing.T, k keys, a *arrivals) time.Duration {
	t.Helper()
	config := api.DefaultNonPooledConfig()
	config.HttpClient = &http.Client{Transport: a}
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	g := &gang{Client: &Client{times: registry.DefaultTimes(), ready: &connection{api: client, large: largeTime}}, keys: k}
	var w watches
	w.init()
	w.follow(t.Context(), g, registry.Directive{Gen: 1, Act: registry.ActWait})
	defer w.close()
	for {
		select {
		case r := <-w.ready:
			if len(r.set) == len(a.order) {
				return time.Since(a.began.Add(a.every * time.Duration(len(a.order))))
			}
			var open []registry.Instance
			for i := range a.order {
				if in := (registry.Instance{Component: "worker", Index: i}); !r.set[in] {
					open = append(open, in)
				}
			}
			w.awaits(open)
		case since := <-w.trouble:
			t.Fatal(errors.New("no answers since "), since)
		}
	}
}

// Of two flexes the one that was asked for first is looked at first, whatever their ids: one that is served already
// would else be taken for a wish to go back.
func TestAsksInTheirOrder(t *testing.T) {
	asks, err := asksOf([]*api.KVPair{
		{Key: "asks/a", CreateIndex: 9, Value: []byte(`{"kind":"flex","id":"a"}`)},
		{Key: "asks/b", CreateIndex: 7, Value: []byte(`{"kind":"flex","id":"b"}`)},
	})
	if err != nil || len(asks) != 2 || asks[0].ID != "b" {
		t.Errorf("got %+v, %v; want b, then a", asks, err)
	}
}
