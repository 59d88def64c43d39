package nomad

import (
	"testing"

	"github.com/muster-agent/muster/shim/launcher"
)

func TestCountList(t *testing.T) {
	for list, want := range map[string]int{"": 0, "4": 1, "0-3,7": 5, "3-1": 0, "a": 0, "1,": 0} {
		if got := countList(list); got != want {
			t.Errorf("countList(%q) = %d, want %d", list, got, want)
		}
	}
}

func TestNomadJob(t *testing.T) {
	long := "a-job-with-a-name-that-is-longer-than-any-app-of-ours-may-have-at-all"
	for _, tt := range []struct{ id, parent, namespace, app, run string }{
		{"tf", "", "default", "tf", ""},
		{"tf", "", "", "tf", ""},
		{"tf", "", "prod", "prod~tf", ""},
		{"tf/dispatch-1485380684-c37b3dba", "tf", "default", "tf~dispatch-1485380684-c37b3dba", "tf~dispatch-1485380684-c37b3dba"},
		{"nightly/periodic-1485380684", "nightly", "ml", "ml~nightly~periodic-1485380684", "ml~nightly~periodic-1485380684"},
		{"team/tf", "", "default", "team~tf", ""},
		{"my job", "", "default", "", ""},
		{"-x", "", "default", "", ""},
		{long, "", "default", "", ""},
		{"", "", "default", "", ""},
	} {
		f := launcher.Detect([]launcher.Launcher{Agents}, map[string]string{
			"NOMAD_ALLOC_ID": "a", "NOMAD_JOB_ID": tt.id, "NOMAD_JOB_PARENT_ID": tt.parent, "NOMAD_NAMESPACE": tt.namespace,
		}, launcher.Facts{})
		if f.AppID != tt.app || f.RunID != tt.run || f.JobID != tt.id {
			t.Errorf("job %q in %q: app %q, run %q, want %q, %q", tt.id, tt.namespace, f.AppID, f.RunID, tt.app, tt.run)
		}
		if (f.AppID == "") != (f.Origins["app_id"] == "") || (f.RunID == "") != (f.Origins["run"] == "") {
			t.Errorf("job %q: origins %v", tt.id, f.Origins)
		}
	}
}
