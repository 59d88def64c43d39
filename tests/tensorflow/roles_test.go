package tensorflow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/commandline"
)

// config is TF_CONFIG.
type config struct {
	Cluster map[string][]string `json:"cluster"`
	Task    task                `json:"task"`
}

type task struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

// member is an instance and what it exports.
type member struct{ name, address string }

// members are a component's instances, as they are listed: in the order of the indices.
func members(r commandline.Report, component string) []member {
	var list []member
	for _, in := range r.Instances {
		if name, _, _ := strings.Cut(in.Instance, "-"); name == component {
			list = append(list, member{in.Instance, in.Exports[component+".host_port"]})
		}
	}
	return list
}

// ledBy is the TF_CONFIG of everybody in a gang where the first of chief and workers is the chief.
func ledBy(r commandline.Report) map[string]config {
	trainers := append(members(r, "chief"), members(r, "worker")...)
	jobs := map[string][]member{
		"chief": trainers[:1], "worker": trainers[1:], "ps": members(r, "ps"), "evaluator": members(r, "evaluator"),
	}
	cluster := map[string][]string{}
	for _, job := range []string{"chief", "worker", "ps"} {
		for _, m := range jobs[job] {
			cluster[job] = append(cluster[job], m.address)
		}
	}
	want := map[string]config{}
	for job, members := range jobs {
		for i, m := range members {
			want[m.name] = config{cluster, task{job, i}}
		}
	}
	return want
}

// The program of HBox's FAQ 16 makes a TF_CONFIG with a chief out of TF_CLUSTER_DEF, TF_ROLE and
// TF_INDEX. It is the command of every component here.
func TestFAQ16InEveryRole(t *testing.T) {
	python3(t)
	for _, tt := range []struct {
		name, instances string
		size            int
		ownChief        bool // the app has a component chief, so our own TF_CONFIG has one too
	}{
		{"chief, workers, ps, evaluator", "chief=1,worker=2,ps=2,evaluator=1", 6, true},
		{"worker 0 leads", "chief=0,worker=3,ps=1,evaluator=1", 5, false},
		{"a chief alone", "chief=1,worker=0,ps=1,evaluator=0", 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := commandline.NewHost(t, muster)
			r := h.Run(copied(t, rolesFolder, "faq16.py"), "--instances", tt.instances)
			want := ledBy(r)
			if len(want) != tt.size || len(r.Instances) != tt.size {
				t.Fatalf("got %d instances, expectations for %d, want %d", len(r.Instances), len(want), tt.size)
			}
			for name, config := range want {
				lines := strings.Split(strings.TrimSpace(r.Printed(t, name)), "\n")
				if len(lines) != 2 {
					t.Errorf("%s: got %q, want the program's line and TF_CONFIG", name, lines)
					continue
				}
				compare(t, name+", made by the program", config, lines[0])
				if tt.ownChief {
					compare(t, name+", TF_CONFIG as muster sets it", config, lines[1])
				}
			}
		})
	}
}

func compare(t *testing.T, what string, want config, line string) {
	t.Helper()
	var got config
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Errorf("%s: %v in %q", what, err, line)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TensorFlow itself reads the TF_CONFIG of every role.
func TestTensorFlowReadsTFConfig(t *testing.T) {
	python := tensorflowPython(t)
	h := commandline.NewHost(t, muster)
	r := h.Run(copied(t, rolesFolder, "tf_config.py"), "--instances", "chief=1,worker=1,ps=1,evaluator=1",
		"--set", "site.global.program="+python+" app/install/tf_config.py")
	want := ledBy(r)
	if len(want) != 4 {
		t.Fatalf("got expectations for %d instances, want 4", len(want))
	}
	for name, config := range want {
		compare(t, name+", as TFConfigClusterResolver reads it", config, r.Printed(t, name))
	}
}
