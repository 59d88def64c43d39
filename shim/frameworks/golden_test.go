package frameworks_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

// told is one framework's golden: the gangs that it is asked of, each with what makes it another.
type told struct {
	framework string
	gangs     []gangOf
}

type gangOf struct {
	name   string
	parts  []string
	side   string // what the first trainer has beside it
	change func(*plan.Plan)
	roster func(*registry.Roster)
}

// toldOf are the frameworks but TensorFlow: 3 workers always, with 2 parameter servers where the
// framework has them, a chief, and several processes in a container.
func toldOf() []told {
	two := func(p *plan.Plan) { p.Processes = 2 }
	return []told{
		{"pytorch", []gangOf{
			{parts: []string{"worker:worker=3"}},
			{parts: []string{"chief:chief=1", "worker:worker=2", "evaluator:evaluator=1", "board:service=1"}},
			{name: "two processes each, formed for the third time", parts: []string{"worker:worker=3"}, change: func(p *plan.Plan) {
				p.Processes, p.Restart.Budget = 2, 5
			}, roster: func(r *registry.Roster) { r.Gen = 3 }},
			{name: "IPv6", parts: []string{"worker:worker=2"}, roster: sixth},
		}},
		{"jax", []gangOf{
			{parts: []string{"worker:worker=3"}},
			{parts: []string{"chief:chief=1", "worker:worker=2"}},
			{name: "two processes each", parts: []string{"worker:worker=3"}, change: two},
			{name: "two processes with a GPU each", parts: []string{"worker:worker=1"}, change: func(p *plan.Plan) {
				p.Processes, p.Limits.GPUs = 2, 2
			}},
		}},
		{"mxnet", []gangOf{
			{parts: []string{"ps:ps=2", "worker:worker=3"}, side: plan.SideScheduler},
			{parts: []string{"worker:worker=2", "ps:ps=1", "chief:chief=1"}, side: plan.SideScheduler},
			{name: "hosts by number, two processes each", parts: []string{"ps:ps=1", "worker:worker=2"}, side: plan.SideScheduler, change: two, roster: numbered},
			{name: "no server", parts: []string{"worker:worker=2"}, side: plan.SideScheduler},
			{name: "no scheduler", parts: []string{"ps:ps=1", "worker:worker=1"}},
		}},
		{"xflow", []gangOf{
			{name: "two processes each", parts: []string{"ps:ps=1", "worker:worker=2"}, side: plan.SideScheduler, change: two, roster: numbered},
			{parts: []string{"ps:ps=2", "worker:worker=3"}, side: plan.SideScheduler, roster: numbered},
		}},
		{"xgboost", []gangOf{
			{parts: []string{"worker:worker=3"}, side: plan.SideTracker},
			{parts: []string{"chief:chief=1", "worker:worker=2"}, side: plan.SideTracker},
			{name: "two processes each", parts: []string{"worker:worker=2"}, side: plan.SideTracker, change: two},
			{name: "no tracker", parts: []string{"worker:worker=2"}},
		}},
		{"horovod-gloo", []gangOf{
			{parts: []string{"worker:worker=3", "board:service=1"}, side: plan.SideRendezvous},
			{name: "two processes each", parts: []string{"chief:chief=1", "worker:worker=2"}, side: plan.SideRendezvous, change: two},
			{name: "its own library", parts: []string{"worker:worker=1"}, change: func(p *plan.Plan) {
				p.Process.Env = map[string]string{"HOROVOD_CPU_OPERATIONS": "ccl"}
			}},
			{name: "no rendezvous", parts: []string{"worker:worker=2"}},
		}},
		{"lightgbm", []gangOf{
			{parts: []string{"worker:worker=3"}, roster: numbered},
			{parts: []string{"chief:chief=1", "worker:worker=2"}},
			{name: "IPv6", parts: []string{"worker:worker=2"}, roster: sixth},
		}},
		{"lightlda", []gangOf{
			{parts: []string{"ps:ps=2", "worker:worker=3"}, roster: numbered},
			{name: "no server", parts: []string{"worker:worker=1"}},
		}},
		{"xdl", []gangOf{
			{parts: []string{"ps:ps=3", "worker:worker=3", "board:service=1"}, change: func(p *plan.Plan) {
				p.Limits.VCores, p.Limits.MemoryMB = 2, 4096
			}},
			{name: "no server", parts: []string{"worker:worker=1"}},
			{name: "a component called scheduler", parts: []string{"scheduler:ps=1", "ps:ps=2", "worker:worker=1"}, change: func(p *plan.Plan) {
				p.HBox = &plan.HBox{Type: "XDL", PSCPUs: 3, PSMemory: 2048}
			}},
		}},
		{"tony", []gangOf{
			{parts: []string{"ps:ps=2", "worker:worker=2", "evaluator:evaluator=1", "tensorboard:service=1"}},
			{parts: []string{"chief:chief=1", "worker:worker=2"}, side: "tensorboard"},
			{name: "ps-lite", parts: []string{"scheduler:ps=1", "server:ps=2", "worker:worker=2"}},
		}},
		{"tensor2tensor", []gangOf{
			{parts: []string{"ps:ps=2", "worker:worker=3", "evaluator:evaluator=1"}},
			{parts: []string{"chief:chief=1", "worker:worker=2"}},
			{name: "hosts called worker", parts: []string{"worker:worker=2"}, roster: func(r *registry.Roster) {
				r.Rows[0].Addr = "worker-1.example:2000"
			}},
		}},
	}
}

// numbered gives the hosts numbers for names.
func numbered(r *registry.Roster) {
	for i := range r.Rows {
		r.Rows[i].Addr = fmt.Sprintf("10.0.0.%d:%d", i+1, 2000+i)
	}
}

func sixth(r *registry.Roster) {
	for i := range r.Rows {
		r.Rows[i].Addr = fmt.Sprintf("[2001:db8::%d]:%d", i+1, 2000+i)
	}
}

// build makes the gang's roster; what runs beside the first trainer has port 3000.
func (g gangOf) build() registry.Roster {
	r := gang(g.parts...)
	r.Run, r.Gen = "run-1", 1
	if first := leader(r); g.side != "" && first >= 0 {
		r.Rows[first].Ports = map[string]int{"side." + g.side: 3000}
	}
	if g.roster != nil {
		g.roster(&r)
	}
	return r
}

// leader is the row of the first chief, else of the first worker.
func leader(r registry.Roster) int {
	for _, role := range []string{"chief", "worker"} {
		if i := slices.IndexFunc(r.Rows, func(row registry.Row) bool { return row.Role == role }); i >= 0 {
			return i
		}
	}
	return -1
}

func (g gangOf) plan(framework string, row registry.Row) plan.Plan {
	p := planOf(row)
	p.Framework = framework
	if g.change != nil {
		g.change(&p)
	}
	return p
}

func (g gangOf) title() string {
	if g.name == "" {
		return strings.Join(g.parts, " ")
	}
	return strings.Join(g.parts, " ") + ": " + g.name
}

func TestWhatEachFrameworkIsTold(t *testing.T) {
	for _, one := range toldOf() {
		t.Run(one.framework, func(t *testing.T) {
			var b strings.Builder
			for _, g := range one.gangs {
				fmt.Fprintf(&b, "== %s\n", g.title())
				r := g.build()
				for i, row := range r.Rows {
					p := g.plan(one.framework, row)
					env, files := frameworks.Env(p, r)
					fmt.Fprintf(&b, "%s\n", row.Instance)
					write(&b, env, files)
					if g.side != "" && i == leader(r) {
						fmt.Fprintf(&b, "%s beside %s\n", g.side, row.Instance)
						write(&b, frameworks.SideEnv(p, r, g.side), nil)
					}
				}
			}
			golden(t, "testdata/"+one.framework+".golden", b.String())
		})
	}
}

// The manual tells of every variable and file that a framework is told.
func TestManualTellsOfEachVariable(t *testing.T) {
	manual, err := os.ReadFile("../../doc/frameworks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range toldOf() {
		for _, g := range one.gangs {
			r := g.build()
			for _, row := range r.Rows {
				p := g.plan(one.framework, row)
				p.HBox = nil // it is told of elsewhere
				env, files := frameworks.Env(p, r)
				for _, name := range slices.Concat(slices.Collect(maps.Keys(env)), slices.Collect(maps.Keys(files))) {
					if !strings.Contains(string(manual), "`"+name+"`") {
						t.Errorf("doc/frameworks.md does not tell of %s, which %s is told", name, one.framework)
					}
				}
			}
		}
	}
}

func write(b *strings.Builder, env, files map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(b, "  %s=%s\n", name, env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(b, "  file %s\n", name)
		for line := range strings.Lines(files[name]) {
			fmt.Fprintf(b, "    | %s", line)
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(got, "\n"), strings.Split(string(want), "\n")); diff != "" {
		t.Errorf("%s (-got +want):\n%s", file, diff)
	}
}

// Whatever the shape, the ranks of those that train are 0 to n-1, each once, and all are told the same
// of the whole.
func TestRanksAreDense(t *testing.T) {
	for framework, v := range map[string]struct {
		rank, world string
		same        []string
	}{
		"pytorch":      {"RANK", "WORLD_SIZE", []string{"MASTER_ADDR", "MASTER_PORT", "INIT_METHOD", "master_addr", "GROUP_WORLD_SIZE", "LOCAL_WORLD_SIZE"}},
		"jax":          {"JAX_PROCESS_ID", "JAX_NUM_PROCESSES", []string{"JAX_COORDINATOR_ADDRESS"}},
		"xgboost":      {"DMLC_TASK_ID", "DMLC_NUM_WORKER", []string{"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT"}},
		"horovod-gloo": {"HOROVOD_RANK", "HOROVOD_SIZE", []string{"HOROVOD_CROSS_SIZE", "HOROVOD_LOCAL_SIZE"}},
		"mxnet":        {"DMLC_WORKER_ID", "DMLC_NUM_WORKER", []string{"DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER"}},
	} {
		side := map[string]string{"xgboost": plan.SideTracker, "mxnet": plan.SideScheduler, "horovod-gloo": plan.SideRendezvous}[framework]
		for _, shape := range shapes() {
			for _, n := range []int{0, 1, 3} {
				g := gangOf{parts: shape, side: side, change: func(p *plan.Plan) { p.Processes = n }}
				r := g.build()
				var ranks []int
				said := map[string]string{}
				for _, row := range r.Rows {
					env, _ := frameworks.Env(g.plan(framework, row), r)
					text, ok := env[v.rank]
					if !ok {
						continue
					}
					for i := range max(n, 1) {
						ranks = append(ranks, atoi(t, text)+i)
					}
					if rises := slices.Contains(strings.Fields(env[plan.RisingVariable]), v.rank); rises != (n > 1) {
						t.Errorf("%s %v with %d processes: %s rises: %t", framework, shape, n, v.rank, rises)
					}
					for _, name := range append(v.same, v.world) {
						if other, seen := said[name]; seen && other != env[name] || env[name] == "" {
							t.Errorf("%s %v: %s is %q here and %q there", framework, shape, name, env[name], other)
						}
						said[name] = env[name]
					}
				}
				if len(ranks) == 0 && framework == "mxnet" && !hasPS(r) {
					continue // there is no cluster
				}
				slices.Sort(ranks)
				want := make([]int, trainersOf(r)*max(n, 1))
				for i := range want {
					want[i] = i
				}
				if !slices.Equal(ranks, want) || said[v.world] != strconv.Itoa(len(want)) {
					t.Errorf("%s %v with %d processes: ranks %v of %s, want %v", framework, shape, n, ranks, said[v.world], want)
				}
			}
		}
	}
}

func trainersOf(r registry.Roster) (n int) {
	for _, row := range r.Rows {
		if row.Role == "chief" || row.Role == "worker" {
			n++
		}
	}
	return n
}

func hasPS(r registry.Roster) bool {
	return slices.ContainsFunc(r.Rows, func(row registry.Row) bool { return row.Role == "ps" })
}

// Who has no part in the training is told nothing, and nobody is while the first has no address.
func TestOutsidersAreToldNothing(t *testing.T) {
	r := gang("worker:worker=2", "evaluator:evaluator=1", "board:service=1")
	bare := gang("worker:worker=2")
	for i := range bare.Rows {
		bare.Rows[i].Addr = "host"
	}
	for _, framework := range []string{"pytorch", "jax", "xgboost", "horovod-gloo", "mxnet", "xflow", "lightgbm", "lightlda", "xdl"} {
		for _, row := range r.Rows[2:] {
			if env, files := frameworks.Env(gangOf{}.plan(framework, row), r); len(env)+len(files) != 0 {
				t.Errorf("%s: %s is told %v, %v", framework, row.Instance, env, files)
			}
		}
		if framework == "xgboost" {
			continue // its workers meet at the tracker
		}
		if env, files := frameworks.Env(gangOf{}.plan(framework, bare.Rows[1]), bare); len(env)+len(files) != 0 {
			t.Errorf("%s without an address: told %v, %v", framework, env, files)
		}
	}
}

// The nodes of ps-lite and rabit meet at a port of the first trainer whether or not they export one of
// their own.
func TestSidesAreFoundWithoutAddresses(t *testing.T) {
	r := gangOf{parts: []string{"ps:ps=1", "worker:worker=2"}, side: plan.SideScheduler}.build()
	for i := range r.Rows {
		r.Rows[i].Addr = "10.0.0." + strconv.Itoa(i+1)
	}
	for _, row := range r.Rows {
		env, _ := frameworks.Env(gangOf{}.plan("mxnet", row), r)
		if env["DMLC_PS_ROOT_URI"] != "10.0.0.2" || env["DMLC_PS_ROOT_PORT"] != "3000" || env["DMLC_NODE_HOST"] != row.Addr {
			t.Errorf("%s is told %v", row.Instance, env)
		}
	}
	if env := frameworks.SideEnv(plan.Plan{}, r, "board"); len(env) != 0 {
		t.Errorf("a side process of the user's is told %v", env)
	}
}
