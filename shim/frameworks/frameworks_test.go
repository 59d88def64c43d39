package frameworks_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// gang makes a roster of `component:role=count` parts, in rank order, and of services without rows.
func gang(parts ...string) (r registry.Roster) {
	for _, part := range parts {
		var name, role string
		var n int
		if _, err := fmt.Sscanf(strings.NewReplacer(":", " ", "=", " ").Replace(part), "%s %s %d", &name, &role, &n); err != nil {
			panic(part + ": " + err.Error())
		}
		for i := range n {
			r.Rows = append(r.Rows, registry.Row{
				Instance: registry.Instance{Component: name, Index: i}, Rank: len(r.Rows), Role: role,
				Addr: fmt.Sprintf("%s%d.example:%d", name, i, 2000+len(r.Rows)),
			})
		}
	}
	return r
}

func planOf(row registry.Row) plan.Plan {
	return plan.Plan{
		Training: plan.Training{Framework: "tensorflow"},
		Who:      plan.Who{Component: row.Component, Index: row.Index, Role: row.Role, Rank: row.Rank},
	}
}

// shapes are the gangs that people train with.
func shapes() [][]string {
	return [][]string{
		{"worker:worker=1"},
		{"worker:worker=3"},
		{"ps:ps=1", "worker:worker=1"},
		{"ps:ps=2", "worker:worker=3"},
		{"chief:chief=1", "worker:worker=2"},
		{"ps:ps=1", "chief:chief=1"},
		{"ps:ps=2", "chiefworker:chief=1", "worker:worker=2"},
		{"ps:ps=1", "chief:chief=1", "worker:worker=1", "evaluator:evaluator=1"},
		{"worker:worker=2", "evaluator:evaluator=1"},
		{"master:chief=2", "worker:worker=1"},
		{"ps:ps=1", "reader:worker=1", "trainer:worker=2"},
		{"ps:ps=1", "worker:worker=1", "tensorboard:service=1"},
	}
}

func TestTensorFlow(t *testing.T) {
	var b strings.Builder
	for _, shape := range shapes() {
		r := gang(shape...)
		fmt.Fprintf(&b, "== %s\n", strings.Join(shape, " "))
		for _, row := range r.Rows {
			env, files := frameworks.Env(planOf(row), r)
			if len(files) != 0 {
				t.Errorf("%s: files %v, want none", row.Instance, files)
			}
			fmt.Fprintf(&b, "%s\n", row.Instance)
			for _, name := range slices.Sorted(maps.Keys(env)) {
				fmt.Fprintf(&b, "  %s=%s\n", name, env[name])
			}
		}
	}
	const golden = "testdata/tensorflow.golden"
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

// What holds for every gang, whatever its shape.
func TestTensorFlowLaws(t *testing.T) {
	for _, shape := range shapes() {
		r := gang(shape...)
		seen := map[string]bool{}
		for _, row := range r.Rows {
			if row.Role == "service" {
				continue
			}
			env, _ := frameworks.Env(planOf(row), r)
			var config struct {
				Cluster map[string][]string
				Task    struct {
					Type  string
					Index int
				}
			}
			if err := json.Unmarshal([]byte(env["TF_CONFIG"]), &config); err != nil {
				t.Fatal(err)
			}
			var def map[string][]string
			if err := json.Unmarshal([]byte(env["TF_CLUSTER_DEF"]), &def); err != nil {
				t.Fatal(err)
			}
			name := strings.Join(shape, " ") + " " + row.Instance.String()
			if _, ok := config.Cluster["evaluator"]; ok {
				t.Errorf("%s: the evaluator is in the cluster", name)
			}
			if len(config.Cluster["chief"]) > 1 {
				t.Errorf("%s: more than one chief: %v", name, config.Cluster["chief"])
			}
			for _, job := range slices.Collect(maps.Keys(def)) {
				if job != "ps" && job != "worker" {
					t.Errorf("%s: TF_CLUSTER_DEF has %s", name, job)
				}
			}
			if row.Role != "evaluator" {
				if got := config.Cluster[config.Task.Type][config.Task.Index]; got != row.Addr {
					t.Errorf("%s: TF_CONFIG puts it at %s, want %s", name, got, row.Addr)
				}
				if got := def[env["TF_ROLE"]][atoi(t, env["TF_INDEX"])]; got != row.Addr {
					t.Errorf("%s: TF_CLUSTER_DEF puts it at %s, want %s", name, got, row.Addr)
				}
			}
			if env["LOCAL_ADDRESS"] != row.Addr {
				t.Errorf("%s: LOCAL_ADDRESS %s, want %s", name, env["LOCAL_ADDRESS"], row.Addr)
			}
			task := fmt.Sprint(config.Task)
			if seen[task] {
				t.Errorf("%s: task %s was another's", name, task)
			}
			seen[task] = true
		}
	}
}

// HBox's own programs find the evaluator in TF_CLUSTER_DEF; TF_CONFIG never has it.
func TestHBoxFindsItsEvaluator(t *testing.T) {
	r := gang("ps:ps=1", "worker:worker=2", "evaluator:evaluator=1")
	p := planOf(r.Rows[1])
	p.HBox = &plan.HBox{Type: "TENSORFLOW"}
	env, _ := frameworks.Env(p, r)
	const want = `{"evaluator":["evaluator0.example:2003"],"ps":["ps0.example:2000"],"worker":["worker0.example:2001","worker1.example:2002"]}`
	if env["TF_CLUSTER_DEF"] != want || env["TN_CLUSTER_DEF"] != want {
		t.Errorf("TF_CLUSTER_DEF %s, TN_CLUSTER_DEF %s, want %s", env["TF_CLUSTER_DEF"], env["TN_CLUSTER_DEF"], want)
	}
	if strings.Contains(env["TF_CONFIG"], "evaluator") {
		t.Errorf("TF_CONFIG %s", env["TF_CONFIG"])
	}
}

// A service and a member without an address are told nothing.
func TestTensorFlowTellsOutsidersNothing(t *testing.T) {
	r := gang("ps:ps=1", "worker:worker=1")
	for _, who := range []plan.Who{{Component: "tensorboard", Role: "service"}, {Component: "worker", Index: 7, Role: "worker"}} {
		if env, _ := frameworks.Env(plan.Plan{Training: plan.Training{Framework: "tensorflow"}, Who: who}, r); len(env) != 0 {
			t.Errorf("%v: got %v, want nothing", who, env)
		}
	}
	r.Rows = append(r.Rows, registry.Row{Instance: registry.Instance{Component: "evaluator"}, Role: "evaluator", Addr: "host"})
	env, _ := frameworks.Env(planOf(r.Rows[2]), r)
	if !strings.HasSuffix(env["TF_CONFIG"], `"task":{"type":"evaluator","index":0}}`) {
		t.Errorf("an evaluator needs no port: TF_CONFIG %s", env["TF_CONFIG"])
	}
	r = registry.Roster{Rows: []registry.Row{{Instance: registry.Instance{Component: "worker"}, Role: "worker", Addr: "host"}}}
	if env, _ := frameworks.Env(planOf(r.Rows[0]), r); len(env) != 0 {
		t.Errorf("without addresses: got %v, want nothing", env)
	}
}

func TestNone(t *testing.T) {
	r := gang("worker:worker=2")
	for _, name := range []string{"none", "caffe", ""} {
		p := planOf(r.Rows[0])
		p.Framework = name
		if env, files := frameworks.Env(p, r); env == nil || files == nil || len(env)+len(files) != 0 {
			t.Errorf("%q: got %v, %v, want empty maps", name, env, files)
		}
	}
}

// The same roster gives the same bytes, however often and in whatever order it is asked.
func TestTensorFlowIsStable(t *testing.T) {
	r := gang("ps:ps=3", "chief:chief=1", "worker:worker=4")
	first := map[registry.Instance]map[string]string{}
	for _, row := range r.Rows {
		first[row.Instance], _ = frameworks.Env(planOf(row), r)
	}
	rows := slices.Clone(r.Rows)
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for _, row := range rows {
		env, _ := frameworks.Env(planOf(row), r)
		if diff := cmp.Diff(env, first[row.Instance]); diff != "" {
			t.Errorf("%s (-got +want):\n%s", row.Instance, diff)
		}
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		t.Fatalf("%q is no number", s)
	}
	return n
}

// A chief with a memory of its own is HBox's worker 0, and no chief: programs that know HBox make one of it themselves.
func TestHBoxHasNoChief(t *testing.T) {
	own := gang("ps:ps=1", "chiefworker:chief=1", "worker:worker=1", "evaluator:evaluator=1")
	one := gang("ps:ps=1", "worker:worker=2", "evaluator:evaluator=1")
	for i, row := range own.Rows {
		one.Rows[i].Addr = row.Addr
	}
	for i, row := range own.Rows {
		p, q := planOf(row), planOf(one.Rows[i])
		p.HBox, q.HBox = &plan.HBox{Type: "TENSORFLOW"}, &plan.HBox{Type: "TENSORFLOW"}
		got, _ := frameworks.Env(p, own)
		want, _ := frameworks.Env(q, one)
		for _, name := range []string{"TF_CONFIG", "TF_CLUSTER_DEF", "TF_ROLE", "TF_INDEX"} {
			if got[name] != want[name] {
				t.Errorf("%s: %s is %s, want %s", row.Instance, name, got[name], want[name])
			}
		}
	}
}
