package submit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSlurmStates(t *testing.T) {
	for _, tt := range []struct {
		line string
		want State
	}{
		{"JobId=7 JobName=d1 JobState=PENDING Reason=Resources Dependency=(null) ExitCode=0:0", State{Word: "PENDING", Why: "Resources"}},
		{"JobId=7 JobState=RUNNING Reason=None ExitCode=0:0 Comment=JobState=COMPLETED", State{Word: "RUNNING"}},
		{"JobId=7 JobState=COMPLETED Reason=None ExitCode=0:0", State{Word: "COMPLETED", Over: true, OK: true}},
		{"JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=93:0", State{Word: "FAILED", Over: true, Why: "NonZeroExitCode, exit code 93:0"}},
		{"JobId=7 JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15", State{Word: "TIMEOUT", Over: true, Why: "the time limit of the job is over, exit code 0:15"}},
		{"JobId=7 JobState=CANCELLED Reason=None ExitCode=0:15", State{Word: "CANCELLED", Over: true, Why: "exit code 0:15"}},
		{"", State{}},
	} {
		if got := slurmState(tt.line); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.line, got, tt.want)
		}
	}
}

func TestKubernetesStates(t *testing.T) {
	for _, tt := range []struct {
		text string
		want State
	}{
		{`{"kind":"JobSet","metadata":{"name":"d1"},"status":{}}`, State{Word: "running"}},
		{`{"kind":"JobSet","status":{"conditions":[{"type":"Completed","status":"True"}]}}`, State{Word: "completed", Over: true, OK: true}},
		{
			`{"kind":"JobSet","metadata":{"name":"d1"},"status":{"conditions":[{"type":"Failed","status":"True","reason":"FailedJobs","message":"worker"}]}}`,
			State{Word: "failed", Over: true, Why: "d1: FailedJobs: worker"},
		},
		{
			`{"kind":"List","items":[{"kind":"Service"},{"kind":"Job","status":{"conditions":[{"type":"Complete","status":"True"}]}},{"kind":"Job"}]}`,
			State{Word: "completed, running"},
		},
		{`{"kind":"Job","status":{"conditions":[{"type":"Failed","status":"False"}]}}`, State{Word: "running"}},
		{`{"kind":"Service"}`, State{Word: "deleted", Over: true, Why: "the cluster does not know the job any more"}},
		{``, State{Word: "deleted", Over: true, Why: "the cluster does not know the job any more"}},
	} {
		jobs, err := readObjects(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := kubernetesState(jobs); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

// A job that is dead for Nomad is over when the last of its tasks is.
func TestNomadStates(t *testing.T) {
	for _, tt := range []struct {
		status, allocations string
		want                State
	}{
		{"running", `[{"ClientStatus":"running"}]`, State{Word: "running"}},
		{"dead", `[{"ClientStatus":"complete"},{"ClientStatus":"running"}]`, State{Word: "dead", Why: "allocations to end: 1"}},
		{"dead", `[{"ClientStatus":"pending"}]`, State{Word: "dead", Why: "allocations to end: 1"}},
		{"dead", `[{"ClientStatus":"complete"},{"ClientStatus":"lost","NextAllocation":"b"}]`, State{Word: "dead", Over: true, OK: true}},
		{"dead", `[{"Name":"d1.worker[0]","ClientStatus":"failed"}]`, State{Word: "dead", Over: true, Why: "d1.worker[0] failed"}},
		{"dead", `[]`, State{Word: "dead", Over: true, OK: true}},
		{"running", tasks("pending", "Started", "64", "Restarting", "Started", "64", "Restarting"), State{Word: "running", Futile: true}},
		{"running", tasks("pending", "Started", "64", "Restarting"), State{Word: "running"}},
		{"running", tasks("running", "Started", "64", "Restarting", "Started", "64", "Restarting", "Started"), State{Word: "running"}},
		{"running", tasks("pending", "Started", "64", "Restarting", "Started", "75", "Restarting"), State{Word: "running"}},
		{"running", strings.Replace(tasks("failed", "Started", "64", "Started", "64"), `"JobVersion":0`, `"JobVersion":7`, 1), State{Word: "running"}}, // of an earlier run
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/job/d1", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"ID":"d1","Status":"`+tt.status+`"}`)
		})
		mux.HandleFunc("GET /v1/job/d1/allocations", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.allocations) })
		mux.HandleFunc("GET /v1/job/d1/evaluations", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[]`) })
		server := httptest.NewServer(mux)
		n := &Nomad{Address: server.URL, Final: []int{64, 65}, id: "d1"}
		if err := n.open(nomadJob{}); err != nil {
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

func TestApplicationStates(t *testing.T) {
	for _, tt := range []struct {
		text string
		want State
	}{
		{`{"state":"ACCEPTED","finalStatus":"UNDEFINED","diagnostics":"waiting  for\nAM"}`, State{Word: "ACCEPTED", Why: "waiting for AM"}},
		{`{"state":"FINISHED","finalStatus":"SUCCEEDED"}`, State{Word: "FINISHED SUCCEEDED", Over: true, OK: true}},
		{`{"state":"FINISHED","finalStatus":"FAILED"}`, State{Word: "FINISHED FAILED", Over: true}},
		{`{"state":"KILLED","finalStatus":"KILLED"}`, State{Word: "KILLED", Over: true}},
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
