package consul

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowBody answers at once and takes so long to give the body.
type slowBody struct{ lasts time.Duration }

func (s slowBody) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.lasts):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"Results": []}`))}, nil
}

// A transaction that reads whole prefixes has the time of large answers, on the connection for them; another has not.
func TestReadingOfAllHasItsTime(t *testing.T) {
	for _, tc := range []struct {
		large time.Duration
		op    ops
		ok    bool
	}{
		{largeTime, ops{opGetTree("m/")}, true},
		{largeTime, ops{opDelete("m")}, false},
		{callTime, ops{opGetTree("m/")}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &connection{base: "http://consul", http: &http.Client{Transport: slowBody{2 * callTime}}, large: tc.large}
			if _, err := l.transact(t.Context(), consistent, tc.op); (err == nil) != tc.ok {
				t.Errorf("limit %s, %s: %v", tc.large, tc.op[0].KV.Verb, err)
			}
		})
	}
}
