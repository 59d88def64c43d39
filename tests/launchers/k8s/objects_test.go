// Package k8s_test holds the objects that `muster render k8s` writes to what Kubernetes publishes: the schemas of its own
// kinds and of JobSet, and what a pod's end does by the rules that stand in them; and has a real cluster run them. Set MUSTER_BINARY to try a
// binary that is there already.
package k8s_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/launchers/job"
)

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

func render(t *testing.T, words ...string) string {
	t.Helper()
	return job.Render(t, muster, append([]string{"k8s", "catalog:handwriting", "--image", "registry.example/muster:1", "--app-id", "tf", "--run", "17"}, words...)...)
}

// object is the part of a Job, a JobSet and a Service that the tests look at.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		jobSpec       `yaml:",inline"`
		FailurePolicy *struct {
			MaxRestarts int `yaml:"maxRestarts"`
			Rules       []struct {
				Name, Action        string
				OnJobFailureReasons []string `yaml:"onJobFailureReasons"`
			}
		} `yaml:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string
			Template struct{ Spec jobSpec }
		} `yaml:"replicatedJobs"`
	}
}

type jobSpec struct {
	CompletionMode       string `yaml:"completionMode"`
	Completions          int
	Parallelism          int
	BackoffLimit         int    `yaml:"backoffLimit"`
	PodReplacementPolicy string `yaml:"podReplacementPolicy"`
	// ActiveDeadlineSeconds is what a Job may take: its end's reason is DeadlineExceeded then.
	ActiveDeadlineSeconds int `yaml:"activeDeadlineSeconds"`
	PodFailurePolicy      struct {
		Rules []struct {
			Action      string
			OnExitCodes *struct {
				ContainerName string `yaml:"containerName"`
				Operator      string
				Values        []int
			} `yaml:"onExitCodes"`
			OnPodConditions []struct{ Type, Status string } `yaml:"onPodConditions"`
		}
	} `yaml:"podFailurePolicy"`
	Template struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			RestartPolicy                 string `yaml:"restartPolicy"`
			TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
			Containers                    []struct {
				Name string
				Args []string
			}
		}
	}
}

// podJob is one Job, of a set or by itself.
type podJob struct {
	name string
	jobSpec
	exits map[string]int // what its agents make of classes: --exit-code-map
}

type jobSet struct{ object }

// objects reads a rendering: its jobs, and the set that they are of, if any.
func objects(t *testing.T, text string) (jobs []podJob, set *jobSet) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		if err := decoder.Decode(&o); err != nil {
			break // the end, or what is wrong shows below
		}
		switch o.Kind {
		case "Job":
			jobs = append(jobs, podJob{o.Metadata.Name, o.Spec.jobSpec, map[string]int{}})
		case "JobSet":
			set = &jobSet{o}
			for _, one := range o.Spec.ReplicatedJobs {
				jobs = append(jobs, podJob{one.Name, one.Template.Spec, map[string]int{}})
			}
		}
	}
	if len(jobs) != 2 {
		t.Fatalf("got %d jobs, want those of ps and worker\n%s", len(jobs), text)
	}
	for _, one := range jobs {
		args := one.Template.Spec.Containers[0].Args
		at := slices.Index(args, "--exit-code-map")
		if at < 0 || one.Template.Spec.RestartPolicy != "Never" { // else exit codes count for nothing
			t.Fatalf("%s: got %q, restart policy %s", one.name, args, one.Template.Spec.RestartPolicy)
		}
		for pair := range strings.SplitSeq(args[at+1], ",") {
			class, code, _ := strings.Cut(pair, "=")
			n, err := strconv.Atoi(code)
			if err != nil {
				t.Fatal(err)
			}
			one.exits[class] = n
		}
	}
	return jobs, set
}

// after is what becomes of a Job when a pod of it has ended with this code, by itself or taken away: the first rule that fits
// decides, and a failure that none fits is counted.
func (j podJob) after(code int, takenAway bool) string {
	if code == 0 {
		return "complete"
	}
	for _, rule := range j.PodFailurePolicy.Rules {
		fits := takenAway && len(rule.OnPodConditions) == 1 && rule.OnPodConditions[0].Type == "DisruptionTarget" && rule.OnPodConditions[0].Status == "True"
		if codes := rule.OnExitCodes; codes != nil && codes.Operator == "In" {
			fits = slices.Contains(codes.Values, code)
		}
		switch {
		case !fits:
		case rule.Action == "FailJob":
			return "fails"
		case rule.Action == "Ignore":
			return "again"
		}
	}
	return "again" // up to backoffLimit
}

// after is what becomes of a set when one of its Jobs has failed for this reason; "": it has not.
func (s *jobSet) after(reason string) string {
	if reason == "" {
		return "complete"
	}
	for _, rule := range s.Spec.FailurePolicy.Rules {
		if len(rule.OnJobFailureReasons) == 0 || slices.Contains(rule.OnJobFailureReasons, reason) {
			if rule.Action == "FailJobSet" {
				return "fails"
			}
			return "anew"
		}
	}
	return "anew"
}

// TestSchemas checks what is written for names that Kubernetes does not have, against its published schemas.
func TestSchemas(t *testing.T) {
	words := []string{"--app-id", "7.Up~", "--run", "a~b.", "--queue", "train", "--namespace", "ml", "--time-limit", "90m", "--token-secret", "consul/acl", "--priority", "VERY_HIGH"}
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(render(t, append(words, "--format", "jobs")...)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.29", "1.37"} {
		cmd := exec.CommandContext(t.Context(), "../../../scripts/lab/kubernetes", "validate", path)
		cmd.Env = append(os.Environ(), "VERSION="+version)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "passed") != 3 {
			t.Errorf("%s: %v\n%s", version, err, out)
		}
	}
}
