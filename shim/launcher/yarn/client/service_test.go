package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// What muster has not written is neither replaced nor deleted, also where it has ended.
func TestForeignServicesStay(t *testing.T) {
	const ours = "A service of YARN, written by muster render yarn. | App d1, run 4: worker ×1."
	for _, tt := range []struct {
		name, kept string
		unreadable error
		foreign    bool
	}{
		{"ours", `{"name":"d1","description":"` + ours + `"}`, nil, false},
		{"somebody's", `{"name":"d1","description":"of ours"}`, nil, true},
		{"another app's", `{"name":"d1","description":"` + strings.Replace(ours, "d1", "D1", 1) + `"}`, nil, true},
		{"no definition", `oops`, nil, true},
		{"unreadable", ``, os.ErrPermission, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent []string
			mux := http.NewServeMux()
			mux.HandleFunc("GET /ws/v1/cluster/info", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
			mux.HandleFunc("GET /app/v1/services/d1", func(w http.ResponseWriter, _ *http.Request) {
				state := "STOPPED"
				if slices.Contains(sent, http.MethodPost) {
					state = "ACCEPTED"
				}
				_ = json.NewEncoder(w).Encode(definition{Name: "d1", ID: "application_1_2", State: state})
			})
			mux.HandleFunc("/app/v1/services/", func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Method) })
			mux.HandleFunc("/app/v1/services", func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Method) })
			server := httptest.NewServer(mux)
			defer server.Close()
			y := &serviceClient{
				restClient: &restClient{Addresses: []string{server.URL}}, Definition: `{"name":"d1","description":"` + ours + `"}`,
				Kept: func(_ context.Context, name string) ([]byte, error) {
					if name != "d1" {
						t.Errorf("asked for %s", name)
					}
					return []byte(tt.kept), tt.unreadable
				},
			}
			_, err := y.Start(t.Context())
			want := []string{http.MethodDelete, http.MethodPost}
			if tt.foreign {
				want = nil
			}
			if errors.Is(err, job.ErrForeign) != tt.foreign || (err != nil) != tt.foreign || !slices.Equal(sent, want) {
				t.Errorf("got %v after %v; want foreign: %v after %v", err, sent, tt.foreign, want)
			}
		})
	}
}

func TestApplicationStates(t *testing.T) {
	for _, tt := range []struct {
		text string
		want job.State
	}{
		{`{"state":"ACCEPTED","finalStatus":"UNDEFINED","diagnostics":"waiting  for\nAM"}`, job.State{Word: "ACCEPTED", Why: "waiting for AM"}},
		{`{"state":"FINISHED","finalStatus":"SUCCEEDED"}`, job.State{Word: "FINISHED SUCCEEDED", Over: true, OK: true}},
		{`{"state":"FINISHED","finalStatus":"FAILED"}`, job.State{Word: "FINISHED FAILED", Over: true}},
		{`{"state":"KILLED","finalStatus":"KILLED"}`, job.State{Word: "KILLED", Over: true}},
	} {
		var a application
		if err := json.Unmarshal([]byte(tt.text), &a); err != nil {
			t.Fatal(err)
		}
		if got := a.standing(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.text, got, tt.want)
		}
	}
}
