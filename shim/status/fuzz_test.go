package status

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/samples"
)

// FuzzAsk: whatever is sent to the API, it answers in JSON; what reaches the agent is a signal that exists or a grace
// within a day or a hold within a month, asked for once; what is refused says why.
func FuzzAsk(f *testing.F) {
	for _, ask := range [][3]string{
		{"POST", "/v1/signal", `{"signal":"KILL"}`},
		{"POST", "/v1/signal", `{"signal":"65"}`},
		{"POST", "/v1/signal", `{"signal":"SIGSIGTERM"}`},
		{"POST", "/v1/signal", ""},
		{"POST", "/v1/signal", `[]`},
		{"POST", "/v1/signal", `{"signal":9}`},
		{"POST", "/v1/signal", `{"signal":"-1"}`},
		{"POST", "/v1/stop", ""},
		{"POST", "/v1/stop", `{"grace":0}`},
		{"POST", "/v1/stop", `{"grace":1e300}`},
		{"POST", "/v1/stop", `{"grace":-1e-9}`},
		{"POST", "/v1/stop", `{"grace":null}`},
		{"POST", "/v1/stop", `{"grace":"1"}`},
		{"POST", "/v1/stop", strings.Repeat("[", 70000)},
		{"POST", "/v1/hold", `{"for":3600}`},
		{"POST", "/v1/hold", `{"for":1e300}`},
		{"POST", "/v1/hold", `{}`},
		{"POST", "/v1/exec", `{"argv":["true"]}`},
		{"POST", "/v1/exec", `{"argv":[""],"env":["="]}`},
		{"GET", "/v1/state", ""},
		{"GET", "/v1/peer/silence", ""},
		{"GET", "/v1/logs/stdout?offset=-1", ""},
		{"GET", "/v1/logs/..%2fx?offset=9", ""},
		{"GET", "/v1/logs/stdout?times=true&since=2026-01-02T15:04:05Z&tail=3", ""},
		{"PUT", "/v1/stop", `{}`},
		{"GET", "//", ""},
	} {
		f.Add(ask[0] == "POST", ask[1], ask[2])
	}
	logs := f.TempDir()
	f.Fuzz(func(t *testing.T, post bool, target, body string) {
		asked := 0
		handler := Handler(Source{
			LogDir: logs, State: func() State { return State{} }, Silence: func() Silence { return Silence{} },
			Metrics: func(context.Context, io.Writer) error { return nil },
			Samples: func(int64) samples.Table { return samples.Table{} },
			Signal: func(n int) error {
				if asked++; n < 1 || n > 64 {
					t.Errorf("%q sends signal %d", body, n)
				}
				return nil
			},
			Stop: func(grace *time.Duration) error {
				if asked++; grace != nil && (*grace < 0 || *grace > 24*time.Hour) {
					t.Errorf("%q stops with a grace of %s", body, *grace)
				}
				return nil
			},
			Hold: func(keep time.Duration) error {
				if asked++; keep < 0 || keep > MostHold {
					t.Errorf("%q keeps a container for %s", body, keep)
				}
				return nil
			},
			Exec: func(context.Context, ExecRequest) (Execution, error) {
				t.Errorf("%q reaches exec without an upgrade", body)
				return Execution{}, errors.New("not here")
			},
		})
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+target, strings.NewReader(body))
		if err != nil || strings.Contains(r.URL.RawQuery, "follow") {
			return // no request; one that does not end
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if asked > 1 || asked == 1 && (w.Code != http.StatusOK || !post) {
			t.Errorf("%s %q %q: answered %d after %d calls", method, target, body, w.Code, asked)
		}
		var failure failure
		if refused := w.Code >= http.StatusBadRequest; refused && (json.Unmarshal(w.Body.Bytes(), &failure) != nil || failure.Error == "") {
			t.Errorf("%s %q %q: %d without a reason: %s", method, target, body, w.Code, w.Body)
		}
	})
}
