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

func paiVersions() []string { return []string{"0.5", "0.14", "1"} }

// paiJob is QIZHI's distributed TensorFlow job: two ps_server and two worker. The workers have a label with three ports that
// begin at 5000, and the servers one that no shell can name.
func paiJob(version string) plan.PAI {
	one, two := 1, 2
	label := func(name string, names ...string) plan.PAIPort { return plan.PAIPort{Label: name, Names: names} }
	job := plan.PAI{
		Version: version, Job: "tf-distributed", User: "ada", DefaultFS: "hdfs://nn:9000", DataDir: "hdfs://nn:9000/data",
		OutputDir: "hdfs://nn:9000/Output/tf-distributed", VirtualCluster: "default",
		Roles: []plan.PAIRole{
			{Name: "ps_server", Tasks: 2, CPUs: 2, MemoryMB: 8192, ShmMB: 64, MinFailed: &one, Ports: []plan.PAIPort{
				label("http", "port.http"), label("log.tcp", "port.log.tcp"), label("ssh", "port.ssh"),
			}},
			{Name: "worker", Tasks: 2, CPUs: 4, MemoryMB: 16384, GPUs: 4, ShmMB: 128, MinSucceeded: &two, Ports: []plan.PAIPort{
				label("grpc", "port.grpc", "port.grpc.2", "port.grpc.3"), label("http", "port.http", "port.http-2"), label("ssh", "port.ssh"),
			}},
		},
	}
	if version == "0.5" {
		job.KillAll, job.Roles[1].MinFailed, job.Roles[1].MinSucceeded = 2, &one, nil
	}
	return job
}

func paiRoster() registry.Roster {
	r := gang("ps_server:worker=2", "worker:worker=2")
	for i := range r.Rows {
		base := 2000 + 100*i
		r.Rows[i].Addr = fmt.Sprintf("10.0.0.%d:%d", i+1, base)
		r.Rows[i].Ports = map[string]int{"port.http": base, "port.ssh": base + 2}
		if r.Rows[i].Component == "worker" {
			maps.Copy(r.Rows[i].Ports, map[string]int{"port.grpc": 5000, "port.grpc.2": 5001, "port.grpc.3": 5002, "port.http-2": base + 1})
		} else {
			r.Rows[i].Ports["port.log.tcp"] = base + 3
		}
	}
	return r
}

func paiPlan(job plan.PAI, row registry.Row) plan.Plan {
	p := planOf(row)
	p.Framework, p.PAI, p.App.ID = "none", &job, "tf-1"
	p.Process.Cwd = "/work/" + row.Instance.String()
	return p
}

func TestPAI(t *testing.T) {
	r := paiRoster()
	var b strings.Builder
	for _, version := range paiVersions() {
		for _, at := range []int{1, 2} {
			fmt.Fprintf(&b, "== PAI %s: %s\n", version, r.Rows[at].Instance)
			env, files := frameworks.Env(paiPlan(paiJob(version), r.Rows[at]), r)
			if len(files) != 0 {
				t.Errorf("files %v, want none", files)
			}
			for _, name := range slices.Sorted(maps.Keys(env)) {
				if !strings.HasPrefix(name, "QIZHI_") { // the law below holds the twins
					fmt.Fprintf(&b, "  %s=%s\n", name, env[name])
				}
			}
		}
	}
	const golden = "testdata/pai.golden"
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

// What holds for every task of every generation.
func TestPAILaws(t *testing.T) {
	r := paiRoster()
	for _, version := range paiVersions() {
		job := paiJob(version)
		for _, row := range r.Rows {
			env, _ := frameworks.Env(paiPlan(job, row), r)
			name := version + " " + row.Instance.String()
			for key, value := range env {
				for prefix, twin := range map[string]string{"PAI_": "QIZHI_", "QIZHI_": "PAI_"} {
					rest, ok := strings.CutPrefix(key, prefix)
					if other, told := env[twin+rest]; ok && (!told || other != value) {
						t.Errorf("%s: %s is %q, %s%s %q (told: %t)", name, key, value, twin, rest, other, told)
					}
				}
				if shell := strings.NewReplacer(".", "_", "~", "_").Replace(key); env[shell] != value {
					t.Errorf("%s: %s is %q, %s is %q", name, key, value, shell, env[shell])
				}
			}
			for _, role := range job.Roles {
				hosts := strings.Split(env["PAI_TASK_ROLE_"+role.Name+"_HOST_LIST"], ",")
				if len(hosts) != role.Tasks {
					t.Errorf("%s: %d hosts of %s, want %d", name, len(hosts), role.Name, role.Tasks)
				}
				for i, host := range hosts {
					task := fmt.Sprintf("%s_%d", role.Name, i)
					first, _, _ := strings.Cut(env["PAI_PORT_LIST_"+task+"_http"], ",")
					if want := env["PAI_HOST_IP_"+task] + ":" + first; host != want {
						t.Errorf("%s: host list has %s, want %s", name, host, want)
					}
				}
			}
			if me := fmt.Sprintf("%s:%s", env["PAI_CONTAINER_HOST_IP"], env["PAI_CONTAINER_HOST_PORT"]); me != row.Addr {
				t.Errorf("%s: it is told to be %s, want %s", name, me, row.Addr)
			}
		}
	}
}

func TestPAIRolesThatNoShellNames(t *testing.T) {
	r := gang("a.b:worker=1", "a_b:worker=1", "c~d:worker=1")
	job := plan.PAI{Version: "0.14", Job: "j", User: "u", Roles: []plan.PAIRole{{Name: "a.b", CPUs: 1}, {Name: "a_b", CPUs: 2}, {Name: "c~d", CPUs: 3}}}
	env, _ := frameworks.Env(paiPlan(job, r.Rows[0]), r)
	for name, want := range map[string]string{
		"PAI_RESOURCE_a.b": "0,1,0,0", "PAI_RESOURCE_a_b": "0,2,0,0", // the role of that very name
		"PAI_RESOURCE_c~d": "0,3,0,0", "PAI_RESOURCE_c_d": "0,3,0,0", "QIZHI_HOST_IP_c_d_0": "c~d0.example",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
}

func TestPAIJobEnvsAreLast(t *testing.T) {
	r := paiRoster()
	job := paiJob("0.14")
	job.Env = map[string]string{"PAI_JOB_NAME": "mine", "X": "${USER} $Y {{checkpoint}}", "FRAMEWORK_NAME": ""}
	env, _ := frameworks.Env(paiPlan(job, r.Rows[0]), r)
	for name, want := range map[string]string{"PAI_JOB_NAME": "mine", "QIZHI_JOB_NAME": "tf-distributed", "X": "${USER} $Y {{checkpoint}}", "FRAMEWORK_NAME": ""} {
		if got, told := env[name]; got != want || !told {
			t.Errorf("%s is %q (told: %t), want %q", name, got, told, want)
		}
	}
}

// A service knows the job and its tasks and is none; before there is a roster, the job's own counts hold.
func TestPAIService(t *testing.T) {
	r := paiRoster()
	board := registry.Row{Instance: registry.Instance{Component: "tensorboard"}, Role: "service"}
	env, _ := frameworks.Env(paiPlan(paiJob("0.5"), board), r)
	if env["PAI_JOB_TASK_COUNT"] != "4" || env["PAI_TASK_ROLE_worker_HOST_LIST"] != "10.0.0.3:2200,10.0.0.4:2300" {
		t.Errorf("a service is told %s tasks, workers %s", env["PAI_JOB_TASK_COUNT"], env["PAI_TASK_ROLE_worker_HOST_LIST"])
	}
	for name := range env {
		if strings.Contains(name, "_CURRENT_") || strings.Contains(name, "CONTAINER_HOST") {
			t.Errorf("a service is told %s", name)
		}
	}
	env, _ = frameworks.Env(paiPlan(paiJob("0.5"), board), registry.Roster{})
	if env["PAI_JOB_TASK_COUNT"] != "4" || env["PAI_TASK_ROLE_worker_HOST_LIST"] != "" {
		t.Errorf("without a roster: %s tasks, workers %q", env["PAI_JOB_TASK_COUNT"], env["PAI_TASK_ROLE_worker_HOST_LIST"])
	}
}

func TestPAIOverIPv6(t *testing.T) {
	r := paiRoster()
	for i := range r.Rows {
		r.Rows[i].Addr = fmt.Sprintf("[2001:db8::%d]:%d", i, r.Rows[i].Ports["port.http"])
	}
	env, _ := frameworks.Env(paiPlan(paiJob("0.14"), r.Rows[2]), r)
	if got, want := env["PAI_TASK_ROLE_worker_HOST_LIST"], "[2001:db8::2]:2200,[2001:db8::3]:2300"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := env["PAI_HOST_IP_worker_1"], "2001:db8::3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A folder of this machine is told as TensorFlow and Hadoop open it; whatever else a job file says stays as it is.
func TestPAIFoldersOfThisMachine(t *testing.T) {
	for given, want := range map[string]string{
		"file:/a/b": "file:///a/b", "file:///a": "file:///a", "file://host/a": "file://host/a", "hdfs://n:9000/a": "hdfs://n:9000/a", "/a": "/a", "": "",
	} {
		r := gang("w:worker=1")
		p := planOf(r.Rows[0])
		p.PAI = &plan.PAI{Version: "0.5", Job: "j", DataDir: given, Roles: []plan.PAIRole{{Name: "w", Tasks: 1}}}
		if env, _ := frameworks.Env(p, r); env["PAI_DATA_DIR"] != want || env["QIZHI_DATA_DIR"] != want {
			t.Errorf("%q is told as %q and %q, want %q", given, env["PAI_DATA_DIR"], env["QIZHI_DATA_DIR"], want)
		}
	}
}
