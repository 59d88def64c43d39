package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
			y := &Service{
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

// The priority is the ResourceManager's to give: what it gives instead, or refuses, is said, and the job runs.
func TestPriority(t *testing.T) {
	for _, tt := range []struct {
		name, wanted, answer string
		code                 int
		said                 string
	}{
		{"given", "7", `{"priority":7}`, http.StatusOK, ""},
		{"too high", "7", `{"priority":3}`, http.StatusOK, "priority 7: YARN gives 3: yarn.cluster.max-application-priority is the most\n"},
		{
			"refused", "7", `{"RemoteException":{"message":"no rights"}}`, http.StatusForbidden,
			"403 Forbidden: no rights; yarn application -appId application_1_2 -updatePriority 7 says it again\n",
		},
		{"not wanted", "", ``, http.StatusTeapot, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked, said strings.Builder
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(&asked, r.Body)
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.answer)
			}))
			defer server.Close()
			y := &Service{restClient: &restClient{}, Priority: tt.wanted, Warn: &said, id: "application_1_2"}
			y.api = job.API{Base: server.URL, Client: server.Client()}
			y.prioritize(t.Context())
			if !strings.HasSuffix(said.String(), tt.said) || (tt.said == "") != (said.Len() == 0) {
				t.Errorf("got %q, want the end %q", said.String(), tt.said)
			}
			if got, want := asked.String(), `{"priority":`+tt.wanted+`}`; tt.wanted != "" && got != want {
				t.Errorf("asked for %s, want %s", got, want)
			}
		})
	}
}

// A flex asks YARN for the agents that are missing: those that ended are not started again, and none is taken away.
func TestGrow(t *testing.T) {
	for _, tt := range []struct {
		name, component string
		want            int
		asked           string
	}{
		{"up", `"number_of_containers":2,"containers":[{"state":"READY"},{"state":"READY"}]`, 3, `{"name":"worker","number_of_containers":3}`},
		{"one was flexed away", `"number_of_containers":3,"containers":[{"state":"READY"},{"state":"SUCCEEDED"}]`, 3, `{"name":"worker","number_of_containers":4}`},
		{"one is asked for already", `"number_of_containers":3,"containers":[{"state":"READY"}]`, 3, ""},
		{"down", `"number_of_containers":3,"containers":[]`, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked strings.Builder
			mux := http.NewServeMux()
			mux.HandleFunc("GET /app/v1/services/d1", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"name":"d1","components":[{"name":"worker",`+tt.component+`}]}`)
			})
			mux.HandleFunc("PUT /app/v1/services/d1/components/worker", func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(&asked, r.Body)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			y := &Service{restClient: &restClient{}, name: "d1"}
			y.api = job.API{Base: server.URL, Client: server.Client()}
			if err := y.Grow(t.Context(), map[string]int{"Worker": tt.want}); err != nil || asked.String() != tt.asked {
				t.Errorf("got %v after %s, want %s", err, asked.String(), tt.asked)
			}
		})
	}
}

// Hadoop's clients are told where the ResourceManager's RPC is; its site says where the web application is.
func TestWebOf(t *testing.T) {
	pair := map[string]string{
		"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b",
		"yarn.resourcemanager.address.a": "one:8032", "yarn.resourcemanager.webapp.address.a": "one:8188",
		"yarn.resourcemanager.address.b": "two:8032", "yarn.resourcemanager.hostname.b": "two",
	}
	alone := map[string]string{"yarn.resourcemanager.address": "rm:8032", "yarn.resourcemanager.webapp.address": "rm:9000"}
	named := map[string]string{"yarn.resourcemanager.hostname": "rm"}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "yarn-site.xml"), []byte(`<configuration>
<property><name>yarn.resourcemanager.hostname</name><value>rm</value></property>
<property><name>yarn.resourcemanager.address</name><value>${yarn.resourcemanager.hostname}:8032</value></property>
<property><name>yarn.http.policy</name><value>HTTPS_ONLY</value></property>
</configuration>`), 0o644); err != nil {
		t.Fatal(err)
	}
	secure, err := readSite(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		site      map[string]string
		rpc, want string
	}{
		{alone, "rm:8032", "http://rm:9000"},
		{alone, "rm:9000", ""},
		{pair, "one:8032", "http://one:8188"},
		{pair, "two:8032", "http://two:8088"},
		{nil, "rm:8032", ""},
		{named, "rm:8032", "http://rm:8088"},
		{named, "rm:8088", ""},
		{secure, "rm:8032", "https://rm:8090"},
	} {
		if got := webOf(tt.site, tt.rpc); got != tt.want {
			t.Errorf("%s in %v: got %q, want %q", tt.rpc, tt.site, got, tt.want)
		}
	}
}
