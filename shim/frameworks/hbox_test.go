package frameworks_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

// What HBox's container sets by type; what the frameworks add has goldens of its own.
func TestHBox(t *testing.T) {
	tests := []struct {
		hbox  plan.HBox
		shape []string
	}{
		{plan.HBox{Type: "TENSORFLOW", GPUs: 2, Output: "-1", Input: "data,more"}, []string{"ps:ps=2", "chiefworker:chief=1", "worker:worker=2", "evaluator:evaluator=1"}},
		{plan.HBox{Type: "TENSORFLOW", Single: true, Output: "-1"}, []string{"worker:worker=2"}},
		{plan.HBox{Type: "MXNET", Output: "1"}, []string{"ps:ps=2", "worker:worker=3"}},
		{plan.HBox{Type: "DISTLIGHTGBM", Output: "-1"}, []string{"worker:worker=3"}},
		{plan.HBox{Type: "DISTLIGHTLDA", Output: "-1"}, []string{"ps:ps=2", "worker:worker=3"}},
		{plan.HBox{Type: "HOROVOD", Output: "-1"}, []string{"worker:worker=2"}},
		{plan.HBox{Type: "VPC", Output: "-1"}, []string{"worker:worker=1"}},
		{plan.HBox{Type: "CAFFE", Output: "-1"}, []string{"worker:worker=2"}},
	}
	var b strings.Builder
	for _, test := range tests {
		r := gang(test.shape...)
		fmt.Fprintf(&b, "== %s single=%t: %s\n", test.hbox.Type, test.hbox.Single, strings.Join(test.shape, " "))
		for _, row := range r.Rows {
			p := planOf(row)
			p.Framework, p.HBox, p.App.ID, p.Allocation.User = "none", &test.hbox, "job-1", "ann"
			p.Process.Env = map[string]string{"MUSTER_LOG_DIR": "/log/" + row.Instance.String()}
			env, files := frameworks.Env(p, r)
			if len(files) != 0 {
				t.Errorf("%s: files %v, want none", row.Instance, files)
			}
			fmt.Fprintf(&b, "%s\n", row.Instance)
			for _, name := range slices.Sorted(maps.Keys(env)) {
				fmt.Fprintf(&b, "  %s=%s\n", name, env[name])
			}
		}
	}
	const golden = "testdata/hbox.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")); diff != "" {
		t.Errorf("%s (-got +want):\n%s", golden, diff)
	}
}

// Search paths have the working directory first; the host's Hadoop is told where there is one; the user's own words win.
func TestHBoxTakesOver(t *testing.T) {
	r := gang("worker:worker=1")
	p := planOf(r.Rows[0])
	p.Framework, p.HBox = "none", &plan.HBox{Type: "HBOX", Output: "-1"}
	p.Process.Env = map[string]string{"PYTHONUNBUFFERED": "", "GPU_NUM": "4"}
	p.Process.Inherited = map[string]string{"LD_LIBRARY_PATH": "/lib", "HADOOP_CONF_DIR": "/etc/hadoop", "HADOOP_USER_NAME": "bob"}
	env, _ := frameworks.Env(p, r)
	for name, want := range map[string]string{"LD_LIBRARY_PATH": "./:/lib", "CLASSPATH": "./:./*", "HADOOP_CONF_DIR": "./:/etc/hadoop", "HADOOP_USER_NAME": "bob"} {
		if env[name] != want {
			t.Errorf("%s=%q, want %q", name, env[name], want)
		}
	}
	for _, name := range []string{"PYTHONUNBUFFERED", "GPU_NUM"} {
		if value, there := env[name]; there {
			t.Errorf("%s=%q over the process's own", name, value)
		}
	}
}

// The user's jars are before those of the host and of Hadoop, or behind all of them; the user's own words win.
func TestHBoxJars(t *testing.T) {
	r := gang("worker:worker=1")
	for _, tt := range []struct {
		last            bool
		own, host, want string
		hadoop          *plan.Hadoop
	}{
		{false, "", "/x.jar", "./:./*:/x.jar", nil},
		{true, "", "/x.jar", "./:/x.jar:./*", nil},
		{true, "", "", "./:./*", nil},
		{false, "", "/x.jar", "./:./*:/x.jar:/conf:/h.jar", &plan.Hadoop{Conf: "/conf", Jars: []string{"/h.jar"}}},
		{true, "", "/x.jar", "./:/x.jar:/conf:/h.jar:./*", &plan.Hadoop{Conf: "/conf", Jars: []string{"/h.jar"}}},
		{true, "mine", "/x.jar", "", nil},
	} {
		p := planOf(r.Rows[0])
		p.Framework, p.HBox, p.Hadoop = "none", &plan.HBox{Type: "HBOX", Output: "-1", JarsLast: tt.last}, tt.hadoop
		p.Process.Inherited = map[string]string{"CLASSPATH": tt.host}
		if tt.own != "" {
			p.Process.Env = map[string]string{"CLASSPATH": tt.own}
		}
		if env, _ := frameworks.Env(p, r); env["CLASSPATH"] != tt.want {
			t.Errorf("%+v: got %q", tt, env["CLASSPATH"])
		}
	}
}

// Another dialect's processes hear nothing of HBox.
func TestHBoxIsSilentElsewhere(t *testing.T) {
	r := gang("worker:worker=1")
	p := planOf(r.Rows[0])
	p.Framework = "none"
	if env, _ := frameworks.Env(p, r); len(env) != 0 {
		t.Errorf("variables %v, want none", env)
	}
}
