package launcher

import (
	"maps"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
)

var all = []Name{YARN, Nomad, Slurm, Kubernetes, Systemd, Shell}

// TestEveryCodeIsTold holds the tables together: each launcher is told each answer once, and each code has one answer.
func TestEveryCodeIsTold(t *testing.T) {
	for _, n := range all {
		var got []int
		for i, told := range n.Tells() {
			if told.Answer != string(Answers()[i]) || told.Does == "" {
				t.Errorf("%s: answer %d is %+v", n, i, told)
			}
			got = append(got, told.Codes...)
		}
		slices.Sort(got)
		var want []int
		for _, c := range Codes() {
			want = append(want, c.Code)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is told of %v, want %v", n, got, want)
		}
		if n != Shell && len(n.deeds()) != len(Answers()) {
			t.Errorf("%s has %d deeds", n, len(n.deeds()))
		}
	}
	if codes := Codes(); !slices.IsSortedFunc(codes, func(a, b Code) int { return a.Code - b.Code }) {
		t.Errorf("codes are not sorted: %v", codes)
	}
}

// TestAnswerTo: what asks for nothing else must not be a failure that a launcher repeats for ever.
func TestAnswerTo(t *testing.T) {
	for class, want := range map[registry.Class]Answer{
		registry.ClassNone: Done, registry.ClassStopped: Done,
		registry.ClassApp: Never, registry.ClassOOM: Never, registry.ClassTimeout: Never, registry.ClassDefinition: Never,
		registry.ClassNotPermitted: Never, registry.ClassMuster: Never,
		registry.ClassHost: Elsewhere, registry.ClassGPU: Elsewhere, registry.ClassPreempted: Elsewhere,
		registry.ClassNetwork: Again, registry.ClassData: Again, registry.ClassImage: Again,
		registry.ClassLauncher: "", registry.ClassRegistry: "", registry.ClassFlex: "", registry.ClassMismatch: "",
	} {
		if got := AnswerTo(class); got != want {
			t.Errorf("AnswerTo(%q) = %q, want %q", class, got, want)
		}
	}
}

// TestSurvives: who starts nothing again keeps nothing, and words are those of the table.
func TestSurvives(t *testing.T) {
	words := []string{KeptIndex, KeptPorts, KeptHost, KeptContainer, KeptWork, KeptLogs}
	for _, n := range all {
		s := n.Survives()
		if (s.By == "") != (len(s.Keeps) == 0) || s.Keeps == nil {
			t.Errorf("%s: %+v", n, s)
		}
		for _, k := range s.Keeps {
			if !slices.Contains(words, k) {
				t.Errorf("%s keeps %q", n, k)
			}
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
		f := Detect(map[string]string{
			"NOMAD_ALLOC_ID": "a", "NOMAD_JOB_ID": tt.id, "NOMAD_JOB_PARENT_ID": tt.parent, "NOMAD_NAMESPACE": tt.namespace,
		}, Facts{})
		if f.AppID != tt.app || f.RunID != tt.run || f.JobID != tt.id {
			t.Errorf("job %q in %q: app %q, run %q, want %q, %q", tt.id, tt.namespace, f.AppID, f.RunID, tt.app, tt.run)
		}
		if (f.AppID == "") != (f.Origins["app_id"] == "") || (f.RunID == "") != (f.Origins["run"] == "") {
			t.Errorf("job %q: origins %v", tt.id, f.Origins)
		}
	}
}

// TestSlurmStep: only a task of srun's has a rank.
func TestSlurmStep(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		rank int
	}{
		{"srun", map[string]string{"SLURM_STEP_ID": "0"}, 2},
		{"another of its names", map[string]string{"SLURM_STEPID": "7"}, 2},
		{"the batch script", nil, -1},
		{"the batch script by number", map[string]string{"SLURM_STEP_ID": "4294967291"}, -1},
		{"the interactive step", map[string]string{"SLURM_STEP_ID": "4294967290"}, -1},
		{"no number", map[string]string{"SLURM_STEP_ID": "batch"}, -1},
	} {
		env := map[string]string{"SLURM_JOB_ID": "9", "SLURM_PROCID": "2", "SLURMD_NODENAME": "c3"}
		maps.Copy(env, tt.env)
		f := Detect(env, Facts{})
		if f.Rank != tt.rank || (len(f.Notes) == 0) != (tt.rank >= 0) || (f.Slot == "") != (tt.rank < 0) {
			t.Errorf("%s: rank %d, notes %q, slot %q", tt.name, f.Rank, f.Notes, f.Slot)
		}
		env["SLURMD_NODENAME"] = "c4"
		if other := Detect(env, Facts{}); f.Slot != "" && other.Slot == f.Slot {
			t.Errorf("%s: slot %q on two nodes, on the first of which the task may live", tt.name, f.Slot)
		}
	}
}
