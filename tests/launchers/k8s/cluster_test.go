package k8s_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/launchers/job"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/kubernetesserver"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// ending stands in the pods for an agent: it ends with the code that its app's name has, end-CODE or heal-CODE, and in
// the latter not in the third run of a set.
const ending = `#!/bin/sh
case "$POD_NAME $*" in heal-*" 17-2 "*) exit 0 ;; esac
code=${POD_NAME#*-}
exit "${code%%-*}"
`

// TestClusterEndsByExitCode has a real Kubernetes with JobSet run the rendered objects, whose agents end with each code
// of the table, and wants of the Jobs and the set what the table says.
func TestClusterEndsByExitCode(t *testing.T) {
	s := kubernetesserver.Start(t)
	program := filepath.Join(t.TempDir(), "muster")
	if err := os.WriteFile(program, []byte(ending), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	create := func(t *testing.T, name string, words ...string) {
		t.Helper()
		words = append(words, "--app-id", name, "--instances", "ps=1,worker=2", "--binary", program)
		if err := s.Create(render(t, words...)); err != nil {
			t.Fatal(err)
		}
	}
	jobs, _ := objects(t, render(t, "--format", "jobs", "--instances", "ps=1,worker=2"))
	seen := map[int]bool{}
	for _, tt := range ends {
		for _, code := range codesOf(tt.class, tt.code, jobs[0].exits) {
			if seen[code] {
				continue
			}
			seen[code] = true
			name := "end-" + strconv.Itoa(code)
			t.Run(fmt.Sprintf("jobs %d %s", code, tt.pod), func(t *testing.T) {
				create(t, name, "--format", "jobs")
				for _, component := range []string{"ps", "worker"} {
					wantJob(t, s, name+"-"+component, tt.pod)
					s.Delete("Job", name+"-"+component)
				}
				s.Delete("Service", name)
			})
			if tt.pod == "again" {
				continue // takes a set's three restarts: below, once
			}
			t.Run(fmt.Sprintf("jobset %d %s", code, tt.set), func(t *testing.T) {
				create(t, name)
				wantSet(t, s, name, tt.set, 0)
			})
		}
	}
	t.Run("jobset whose third run succeeds", func(t *testing.T) {
		create(t, "heal-69")
		wantSet(t, s, "heal-69", "complete", 2)
	})
	t.Run("jobset after its last restart", func(t *testing.T) {
		create(t, "end-75")
		wantSet(t, s, "end-75", "fails", 3)
	})
}

// wantSet waits until a set is complete or fails, after so many restarts, and deletes it.
func wantSet(t *testing.T, s *kubernetesserver.Server, name, want string, restarts int) {
	t.Helper()
	defer s.Delete("JobSet", name)
	s.Await("JobSet", name+" is over", func(all map[string]kubernetesserver.Object) bool {
		set := all[name]
		_, complete := set.Condition("Completed")
		_, failed := set.Condition("Failed")
		if (complete || failed) && (want == "complete" != complete || set.Status.Restarts != restarts) {
			t.Errorf("%s: got %+v, want that it %s after %d restarts", name, set.Status, want, restarts)
		}
		return complete || failed
	})
}

// wantJob waits until a Job is complete, fails, or has another pod for an index whose pod has failed.
func wantJob(t *testing.T, s *kubernetesserver.Server, name, want string) {
	t.Helper()
	var job kubernetesserver.Object
	over := func(all map[string]kubernetesserver.Object) bool {
		job = all[name]
		_, complete := job.Condition("Complete")
		_, failed := job.Condition("Failed")
		return complete || failed || want == "again" && job.Status.Failed > 0
	}
	s.Await("Job", name+" is over, or goes on after a failure", over)
	c, failed := job.Condition("Failed")
	_, complete := job.Condition("Complete")
	switch {
	case want == "complete" && complete:
	case want == "fails" && failed && c.Reason == "PodFailurePolicy":
	case want == "again" && !failed:
		s.Await("Pod", name+": another pod for the index", func(all map[string]kubernetesserver.Object) bool {
			return len(podsOf(all, name)) > 1
		})
	default:
		t.Errorf("%s: got %+v, want that it %s", name, job.Status, want)
	}
}

// podsOf are the first index's pods of a Job.
func podsOf(all map[string]kubernetesserver.Object, job string) (pods []kubernetesserver.Object) {
	for _, pod := range all {
		labels := pod.Metadata.Labels
		if labels["batch.kubernetes.io/job-name"] == job && labels["batch.kubernetes.io/job-completion-index"] == "0" {
			pods = append(pods, pod)
		}
	}
	return pods
}

// TestClusterRunsGang has agents in the pods of a real Kubernetes, with a Consul, run gangs to their ends.
func TestClusterRunsGang(t *testing.T) {
	s, consul := kubernetesserver.Start(t), consulserver.Start(t, consulserver.Options{})
	binary, err := filepath.Abs(muster)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, program, restart string
		evict                  string // the pod that is taken away when all processes run
		want                   string
		codes                  map[int]int // how many pods at least end with each code
		pods                   int         // how many there are in all
	}{
		{
			name: "restart", program: `[ "$MUSTER_GENERATION" -gt 1 ]`, restart: "gang", want: "complete",
			codes: map[int]int{0: 3}, pods: 3, // in place: no pod is replaced
		},
		{name: "fail", program: "exit 3", restart: "never", want: "fails", codes: map[int]int{93: 1}, pods: 3},
		{
			name: "evict", program: `echo runs; [ "$MUSTER_GENERATION" -gt 1 ] || exec sleep 1000`, restart: "gang",
			evict: "evict-worker-0-1-", want: "complete", codes: map[int]int{0: 3, 143: 1}, pods: 4,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gang := tinygang.Write(t, t.TempDir(), 2, map[string]string{
				"muster.command": tt.program, "muster.restart": tt.restart,
			})
			text := job.Render(t, muster, "k8s", gang.App, "--image", "registry.example/muster:1", "--app-id", tt.name,
				"--run", "17", "--binary", binary, "--registry", consul.URL(), "--instances", "ps=1,worker=2")
			if err := s.Create(text); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					t.Log(s.Log(tt.name))
				}
			}()
			if tt.evict != "" {
				for ask := job.Until(t, func() string { return "all run: " + s.Log(tt.name) }); ask.Next(); {
					if strings.Count(s.Log(tt.name), "\nruns\n") == 3 {
						break
					}
				}
				for name := range s.Await("Pod", tt.evict+": runs", func(all map[string]kubernetesserver.Object) bool {
					ours := 0
					for name := range all {
						if strings.HasPrefix(name, tt.evict) {
							ours++
						}
					}
					return ours > 0 && len(all) >= 3
				}) {
					if strings.HasPrefix(name, tt.evict) {
						s.Evict(name)
					}
				}
			}
			what := fmt.Sprintf("%s: at least %v", tt.name, tt.codes)
			pods := s.Await("Pod", what, func(all map[string]kubernetesserver.Object) bool {
				codes := codesOfPods(all, tt.name)
				for code := range codes {
					if tt.codes[code] == 0 {
						t.Fatalf("a pod ended with %d, want %v", code, tt.codes)
					}
				}
				for code, n := range tt.codes {
					if codes[code] < n {
						return false
					}
				}
				return true
			})
			n := 0
			for name := range pods {
				if strings.HasPrefix(name, tt.name+"-") {
					n++
				}
			}
			if n != tt.pods {
				t.Errorf("got %d pods, want %d", n, tt.pods)
			}
			wantSet(t, s, tt.name, tt.want, 0)
		})
	}
}

// codesOfPods counts what the pods of an app have ended with.
func codesOfPods(all map[string]kubernetesserver.Object, app string) map[int]int {
	codes := map[int]int{}
	for name, pod := range all {
		for _, c := range pod.Status.ContainerStatuses {
			if end := c.State.Terminated; end != nil && strings.HasPrefix(name, app+"-") {
				codes[end.ExitCode]++
			}
		}
	}
	return codes
}
