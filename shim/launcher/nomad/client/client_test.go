package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// A web server that has no jobs is no Nomad.
func TestNotNomad(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	n := &client{Address: server.URL, Job: `{"Job":{"ID":"d1"}}`}
	if _, err := n.Start(t.Context()); !errors.Is(err, job.ErrUnreachable) || !strings.Contains(err.Error(), "not Nomad's HTTP API (GET /v1/job/d1: 404 Not Found") {
		t.Errorf("got %v, want that it is not Nomad", err)
	}
}

func TestForeignJobsStay(t *testing.T) {
	for _, tt := range []struct {
		name, there string
		kind        error
	}{
		{"ours", `{"ID":"d1","Status":"dead","Meta":{"muster_app":"d1","muster_run":"4"}}`, nil},
		{"ours, which runs", `{"ID":"d1","Status":"running","Meta":{"muster_app":"d1"}}`, job.ErrRuns},
		{"a service of somebody's", `{"ID":"d1","Type":"service","Status":"dead"}`, job.ErrForeign},
		{"one that runs", `{"ID":"d1","Type":"service","Status":"running"}`, job.ErrForeign},
	} {
		t.Run(tt.name, func(t *testing.T) {
			posted := false
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/job/d1", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.there) })
			mux.HandleFunc("POST /v1/jobs", func(http.ResponseWriter, *http.Request) { posted = true })
			server := httptest.NewServer(mux)
			defer server.Close()
			n := &client{Address: server.URL, Job: `{"Job":{"ID":"d1","Meta":{"muster_app":"d1","muster_run":"5"}}}`}
			_, err := n.Start(t.Context())
			if !errors.Is(err, tt.kind) || posted != (tt.kind == nil) {
				t.Errorf("got %v, sent: %v; want %v", err, posted, tt.kind)
			}
		})
	}
}

// A launcher's no is an answer. Where none comes to a job that was sent, the job may be there.
func TestAnswersToAJob(t *testing.T) {
	for _, tt := range []struct {
		name    string
		post    http.HandlerFunc
		unknown bool
		refused bool
	}{
		{"refuses", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such datacenter", http.StatusBadRequest)
		}, false, true},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, false},
		{"takes it", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("POST /v1/jobs", tt.post)
			mux.HandleFunc("GET /v1/job/d1", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "job not found", http.StatusNotFound) })
			server := httptest.NewServer(mux)
			defer server.Close()
			n := &client{Address: server.URL, Job: `{"Job":{"ID":"d1"}}`}
			_, err := n.Start(t.Context())
			if errors.Is(err, job.ErrUnknown) != tt.unknown || errors.Is(err, job.ErrRefused) != tt.refused || (err != nil) != (tt.unknown || tt.refused) {
				t.Errorf("got %v; want unknown: %v, refused: %v", err, tt.unknown, tt.refused)
			}
		})
	}
}

// A job that is dead for Nomad is over when the last of its tasks is.
func TestNomadStates(t *testing.T) {
	for _, tt := range []struct {
		status, allocations string
		want                job.State
	}{
		{"running", `[{"ClientStatus":"running"}]`, job.State{Word: "running"}},
		{"dead", `[{"ClientStatus":"complete"},{"ClientStatus":"running"}]`, job.State{Word: "dead", Why: "allocations to end: 1"}},
		{"dead", `[{"ClientStatus":"pending"}]`, job.State{Word: "dead", Why: "allocations to end: 1"}},
		{"dead", `[{"ClientStatus":"complete"},{"ClientStatus":"lost","NextAllocation":"b"}]`, job.State{Word: "dead", Over: true, OK: true}},
		{"dead", `[{"Name":"d1.worker[0]","ClientStatus":"failed"}]`, job.State{Word: "dead", Over: true, Why: "d1.worker[0] failed"}},
		{"dead", `[]`, job.State{Word: "dead", Over: true, OK: true}},
		{"running", tasks("pending", "Started", "64", "Restarting", "Started", "64", "Restarting"), job.State{Word: "running", Futile: true}},
		{"running", tasks("pending", "Started", "64", "Restarting"), job.State{Word: "running"}},
		{"running", tasks("running", "Started", "64", "Restarting", "Started", "64", "Restarting", "Started"), job.State{Word: "running"}},
		{"running", tasks("pending", "Started", "64", "Restarting", "Started", "75", "Restarting"), job.State{Word: "running"}},
		{"running", strings.Replace(tasks("failed", "Started", "64", "Started", "64"), `"JobVersion":0`, `"JobVersion":7`, 1), job.State{Word: "running"}}, // of an earlier run
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/job/d1", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"ID":"d1","Status":"`+tt.status+`"}`)
		})
		mux.HandleFunc("GET /v1/job/d1/allocations", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.allocations) })
		mux.HandleFunc("GET /v1/job/d1/evaluations", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[]`) })
		server := httptest.NewServer(mux)
		n := &client{Address: server.URL, Final: []int{64, 65}, id: "d1"}
		if err := n.open(jobStanding{}); err != nil {
			t.Fatal(err)
		}
		if got, err := n.State(t.Context()); err != nil || got != tt.want {
			t.Errorf("%s, %s: got %+v, %v, want %+v", tt.status, tt.allocations, got, err, tt.want)
		}
		server.Close()
	}
}

// tasks is an allocation of a task with these events; a number is an end with that code.
func tasks(status string, events ...string) string {
	var all []string
	for _, e := range events {
		if strings.Trim(e, "0123456789") == "" {
			e = `Terminated","ExitCode":` + e + `,"DisplayMessage":"`
		}
		all = append(all, `{"Type":"`+e+`"}`)
	}
	return `[{"ClientStatus":"` + status + `","JobVersion":0,"TaskStates":{"agent":{"Events":[` + strings.Join(all, ",") + `]}}}]`
}
