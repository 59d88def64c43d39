package submit

import (
	"encoding/json"
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
