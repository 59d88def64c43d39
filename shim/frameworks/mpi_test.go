package frameworks_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

// mpiPlan is what plan.Build makes of an instance of an MPI job, as far as its framework reads it.
func mpiPlan(framework string, row registry.Row, launches bool, slots map[string]int) plan.Plan {
	p := planOf(row)
	p.Framework, p.Root.Kind = framework, plan.RootHost
	p.Process.Folder = "/work/" + row.Instance.String()
	if row.Role == "worker" || row.Role == "chief" {
		p.MPI = &plan.MPI{Launches: launches, Slots: slots}
	}
	return p
}

// addressed gives each row an address without a port: an MPI job has none of its own.
func addressed(r registry.Roster, hosts ...string) registry.Roster {
	for i := range r.Rows {
		r.Rows[i].Addr = hosts[i%len(hosts)]
	}
	return r
}

func TestMPI(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		name, framework string
		roster          registry.Roster
		slots           map[string]int
		image           bool
	}{
		{"three on one host", "mpi", addressed(gang("worker:worker=3"), "127.0.0.1"), nil, false},
		{"three hosts, two processes each, and a board", "mpi", addressed(gang("worker:worker=3", "tensorboard:service=1"), "10.1.2.3", "10.1.2.9", "10.1.3.1"), map[string]int{"worker": 2}, true},
		{"beside a ps that has nothing to do with it", "horovod", addressed(gang("ps:ps=2", "worker:worker=3"), "h1.example", "h2.example"), nil, false},
		{"a chief", "cntk", addressed(gang("worker:worker=2", "chief:chief=1"), "10.1.0.1", "192.0.2.1"), map[string]int{"chief": 1, "worker": 4}, false},
	} {
		fmt.Fprintf(&b, "== %s: %s\n", c.framework, c.name)
		first := plan.MPIMembers(c.roster)[0].Instance
		for _, row := range c.roster.Rows {
			p := mpiPlan(c.framework, row, row.Instance == first, c.slots)
			if c.image {
				p.Root.Kind = plan.RootImage
			}
			env, files := frameworks.Env(p, c.roster)
			fmt.Fprintf(&b, "%s\n", row.Instance)
			for _, name := range slices.Sorted(maps.Keys(env)) {
				fmt.Fprintf(&b, "  %s=%s\n", name, env[name])
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintf(&b, "  %s:\n    %s\n", name, strings.ReplaceAll(strings.TrimSpace(files[name]), "\n", "\n    "))
			}
		}
	}
	const golden = "testdata/mpi.golden"
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

// Who knows the network says so in the definition.
func TestMPILeavesTheDefinitionsOwn(t *testing.T) {
	r := addressed(gang("worker:worker=2"), "10.0.0.1", "10.0.0.2")
	p := mpiPlan("horovod", r.Rows[0], true, nil)
	p.Process.Env = map[string]string{"OMPI_MCA_btl_tcp_if_include": "eth1", "OMPI_MCA_btl": "self,tcp", "TMPDIR": "/scratch"}
	env, _ := frameworks.Env(p, r)
	for name := range p.Process.Env {
		if value, told := env[name]; told {
			t.Errorf("%s=%s, want the definition's", name, value)
		}
	}
	if env["OMPI_MCA_oob_tcp_if_include"] != "10.0.0.0/30" {
		t.Errorf("the rest is missing: %v", env)
	}
}

// What two members share is in the network, and no narrower one has both.
func TestMPINetwork(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{[]string{"127.0.0.1", "127.0.0.1"}, "127.0.0.0/31"},
		{[]string{"10.77.0.1", "10.77.0.2", "10.77.0.3"}, "10.77.0.0/30"},
		{[]string{"10.0.0.1", "10.255.0.1"}, "10.0.0.0/8"},
		{[]string{"10.0.0.1", "11.0.0.1"}, ""}, // wider than any network of a site
		{[]string{"10.0.0.1", "192.168.0.1"}, ""},
		{[]string{"10.0.0.1", "node2"}, ""},
		{[]string{"fd00::1", "fd00::2"}, ""},
	} {
		r := addressed(gang(fmt.Sprintf("worker:worker=%d", len(c.hosts))), c.hosts...)
		env, _ := frameworks.Env(mpiPlan("mpi", r.Rows[0], true, nil), r)
		if got := env["OMPI_MCA_btl_tcp_if_include"]; got != c.want || got != env["OMPI_MCA_oob_tcp_if_include"] {
			t.Errorf("%v: got %q and %q, want %q", c.hosts, got, env["OMPI_MCA_oob_tcp_if_include"], c.want)
		}
	}
}

// An Open MPI that the definition names is found by its programs and libraries, here and in what mpirun starts elsewhere; in
// an HBox submission too. What the definition says of a path itself stays.
func TestMPIElsewhere(t *testing.T) {
	r := addressed(gang("worker:worker=2"), "127.0.0.1")
	for _, dialect := range []*plan.HBox{nil, {Type: "MPI", Output: "-1"}} {
		for i, row := range r.Rows {
			p := mpiPlan("mpi", row, i == 0, nil)
			p.HBox = dialect
			p.Process.Env = map[string]string{"OPAL_PREFIX": "/opt/mpi"}
			p.Process.Inherited = map[string]string{"PATH": "/bin", "LD_LIBRARY_PATH": "/l"}
			env, _ := frameworks.Env(p, r)
			libraries := "/opt/mpi/lib:/opt/mpi/lib/openmpi:/opt/mpi/lib/pmix:/l"
			if dialect != nil {
				libraries = "./:" + libraries
			}
			if env["PATH"] != "/opt/mpi/bin:/bin" || env["LD_LIBRARY_PATH"] != libraries {
				t.Errorf("%s, dialect %v: PATH=%s LD_LIBRARY_PATH=%s", row.Instance, dialect, env["PATH"], env["LD_LIBRARY_PATH"])
			}
			p.Process.Env["PATH"] = "/mine"
			if env, _ = frameworks.Env(p, r); env["PATH"] != "" {
				t.Errorf("%s, dialect %v: PATH=%s over the definition's own", row.Instance, dialect, env["PATH"])
			}
		}
	}
}
