package k8s_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
)

// ends are what agents end with: each verdict of contracts 7 with the class that it has, and what precedes a verdict.
var ends = []struct {
	name  string
	class registry.Class // ClassNone: no verdict of a failure
	code  int            // of an agent without a verdict
	pod   string         // what becomes of the Job: complete, fails, again
	set   string         // what becomes of the JobSet when that ends a Job, or too many pods have ended so: complete, fails, anew
}{
	{name: "succeeded", pod: "complete", set: "complete"},
	{name: "app-error", class: registry.ClassApp, pod: "fails", set: "fails"},
	{name: "out-of-memory", class: registry.ClassOOM, pod: "fails", set: "fails"},
	{name: "timeout", class: registry.ClassTimeout, pod: "fails", set: "fails"},
	{name: "definition", class: registry.ClassDefinition, pod: "fails", set: "fails"},
	{name: "not-permitted", class: registry.ClassNotPermitted, pod: "fails", set: "fails"},
	{name: "muster", class: registry.ClassMuster, pod: "fails", set: "fails"},
	{name: "host-lost", class: registry.ClassHost, pod: "again", set: "anew"},
	{name: "gpu-fault", class: registry.ClassGPU, pod: "again", set: "anew"},
	{name: "preempted", class: registry.ClassPreempted, pod: "again", set: "anew"},
	{name: "network", class: registry.ClassNetwork, pod: "again", set: "anew"},
	{name: "data", class: registry.ClassData, pod: "again", set: "anew"},
	{name: "image", class: registry.ClassImage, pod: "again", set: "anew"},
	{name: "usage", code: exit.Usage, pod: "fails", set: "fails"},
	{name: "another digest", code: exit.Definition, pod: "fails", set: "fails"},
	{name: "no registry", code: exit.Registry, pod: "again", set: "anew"},
	{name: "held", code: exit.Held, pod: "again", set: "anew"},
	{name: "barrier", code: exit.Timeout, pod: "fails", set: "fails"},
	{name: "interrupted", code: 128 + 2, pod: "again", set: "anew"},
	{name: "killed", code: 128 + 9, pod: "again", set: "anew"},
	{name: "terminated", code: 128 + 15, pod: "again", set: "anew"},
}

// TestExitCodes leads each end of an agent, the first's and the others', through the rules of the rendered objects, as
// Kubernetes and JobSet read them.
func TestExitCodes(t *testing.T) {
	for _, format := range []string{"jobset", "jobs"} {
		jobs, set := objects(t, render(t, "--format", format, "--instances", "ps=1,worker=2"))
		for _, tt := range ends {
			for _, code := range codesOf(tt.class, tt.code, jobs[0].exits) {
				t.Run(format+" "+tt.name+" "+strconv.Itoa(code), func(t *testing.T) {
					for _, job := range jobs {
						if got := job.after(code, false); got != tt.pod {
							t.Errorf("%s: got %s, want %s", job.name, got, tt.pod)
						}
						want := "again" // whoever was taken away is replaced, whatever it ended with
						if code == 0 {
							want = "complete"
						}
						if got := job.after(code, true); got != want {
							t.Errorf("%s, taken away: got %s, want %s", job.name, got, want)
						}
					}
					if set == nil {
						return
					}
					reason := map[string]string{"fails": "PodFailurePolicy", "again": "BackoffLimitExceeded"}[tt.pod]
					if got := set.after(reason); got != tt.set {
						t.Errorf("the set: got %s, want %s", got, tt.set)
					}
				})
			}
		}
	}
}

// programs are numbers that a program may end with: those that mean something else of an agent among them.
var programs = []int{1, 2, 64, 65, 69, 70, 75, 76, 77, 93, 126, 127, 130, 137, 143, 255}

// codesOf are the codes that agents end with at the end of such a run, the first's and the others', by muster's own table and
// the map of the job files.
func codesOf(class registry.Class, code int, exits map[string]int) []int {
	if class == registry.ClassNone {
		return []int{code}
	}
	var all []int
	for _, program := range programs {
		v := registry.Verdict{Outcome: registry.Failed, Class: class, First: "worker-0", Exit: &registry.MemberExit{Code: &program}}
		for _, me := range []string{"worker-0", "worker-1"} {
			got := exit.Of(v, me)
			if mapped, ok := exits[string(class)]; ok {
				got = mapped
			}
			if !slices.Contains(all, got) {
				all = append(all, got)
			}
		}
	}
	return all
}

// TestTimeIsOver has a Job at its deadline: the set is not to begin anew, with all of its time again.
func TestTimeIsOver(t *testing.T) {
	for _, format := range []string{"jobset", "jobs"} {
		jobs, set := objects(t, render(t, "--format", format, "--instances", "ps=1,worker=2", "--time-limit", "90m"))
		for _, job := range jobs {
			if job.ActiveDeadlineSeconds != 90*60 {
				t.Errorf("%s, %s: ends after %d s, want 5400", format, job.name, job.ActiveDeadlineSeconds)
			}
		}
		if set == nil {
			continue
		}
		if got := set.after("DeadlineExceeded"); got != "fails" {
			t.Errorf("the set: got %s, want fails", got)
		}
	}
}

// TestEveryCodeHasAnEnd wants every code of an agent among the ends.
func TestEveryCodeHasAnEnd(t *testing.T) {
	jobs, _ := objects(t, render(t, "--instances", "ps=1,worker=2"))
	var have []int
	for _, tt := range ends {
		have = append(have, codesOf(tt.class, tt.code, jobs[0].exits)...)
	}
	for _, c := range launcher.Codes() {
		if !slices.Contains(have, c.Code) {
			t.Errorf("%d: %s", c.Code, c.Why)
		}
	}
}
