package launcher

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/plan"
)

const terminalCgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.slice/vte-spawn-1.scope\n"

func TestDetect(t *testing.T) {
	tests := []struct {
		name  string
		env   map[string]string
		facts Facts
		want  Found
	}{
		{
			name: "nothing is a shell",
			env:  map[string]string{"HOME": "/root", "CUDA_VISIBLE_DEVICES": "1"},
			want: Found{Name: Shell, Index: -1, Rank: -1},
		},
		{
			name: "yarn with an epoch in the container's id",
			env: map[string]string{
				"CONTAINER_ID": "container_e17_1410901177871_0001_01_000005", "NM_HOST": "node7",
				"LOCAL_DIRS": "/nm/a, /nm/b", "LOG_DIRS": "/log/a,/log/b", "USER": "ada", "INVOCATION_ID": "x",
			},
			want: Found{
				Name: YARN, AppID: "application_1410901177871_0001", RunID: "application_1410901177871_0001",
				JobID: "application_1410901177871_0001", Attempt: 1,
				Index: -1, Rank: -1, WorkDir: "/nm/a/container_e17_1410901177871_0001_01_000005", LogDir: "/log/a",
				Allocation: plan.Allocation{
					Host: "node7", ContainerID: "container_e17_1410901177871_0001_01_000005",
					KillWindow: 0.25, User: "ada",
				},
				Origins: map[string]string{
					"app_id": "CONTAINER_ID", "run": "CONTAINER_ID", "container_id": "CONTAINER_ID",
					"job_id": "CONTAINER_ID", "attempt": "CONTAINER_ID",
					"host": "NM_HOST", "work_dir": "LOCAL_DIRS", "log_dir": "LOG_DIRS", "user": "USER",
				},
			},
		},
		{
			name: "yarn's folder is the working directory",
			env: map[string]string{
				"CONTAINER_ID": "container_1_0001_02_000005", "NM_HOST": "n", "LOCAL_DIRS": "/nm",
				"PWD": "/nm/usercache/ada/appcache/application_1_0001/container_1_0001_02_000005",
			},
			want: Found{
				Name: YARN, AppID: "application_1_0001", RunID: "application_1_0001", Index: -1, Rank: -1,
				JobID: "application_1_0001", Attempt: 2,
				WorkDir:    "/nm/usercache/ada/appcache/application_1_0001/container_1_0001_02_000005",
				Allocation: plan.Allocation{Host: "n", ContainerID: "container_1_0001_02_000005", KillWindow: 0.25},
				Origins: map[string]string{
					"app_id": "CONTAINER_ID", "run": "CONTAINER_ID", "container_id": "CONTAINER_ID",
					"job_id": "CONTAINER_ID", "attempt": "CONTAINER_ID", "host": "NM_HOST", "work_dir": "PWD",
				},
			},
		},
		{
			name: "a container id alone is not yarn",
			env:  map[string]string{"CONTAINER_ID": "container_1_0001_02_000005"},
			want: Found{Name: Shell, Index: -1, Rank: -1},
		},
		{
			name: "nomad",
			env: map[string]string{
				"NOMAD_ALLOC_ID": "5f3", "NOMAD_GROUP_NAME": "worker", "NOMAD_ALLOC_INDEX": "2",
				"NOMAD_ALLOC_DIR": "/n/alloc", "NOMAD_TASK_DIR": "/n/local", "NOMAD_MEMORY_LIMIT": "512",
				"NOMAD_CPU_LIMIT": "2000", "NOMAD_CPU_CORES": "0-2,7", "NOMAD_PORT_http": "80",
				"NOMAD_HOST_PORT_http": "23456", "NOMAD_PORT_other": "99999", "NOMAD_HOST_IP_http": "10.0.0.7",
				"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b", "NOMAD_JOB_ID": "tf", "NOMAD_NAMESPACE": "default", "NOMAD_TASK_NAME": "agent",
			},
			want: Found{
				Name: Nomad, Component: "worker", Index: 2, Rank: -1, WorkDir: "/n/local", LogDir: "/n/alloc/logs",
				JobID: "tf", AppID: "tf", Slot: "nomad/5f3/agent",
				Allocation: plan.Allocation{
					Host: "10.0.0.7", ContainerID: "5f3", KillWindow: 5, Ports: map[string]int{"http": 23456},
					Devices: []string{"GPU-a", "GPU-b"}, Envelope: plan.Envelope{MemoryMB: 512, VCores: 4},
				},
				Origins: map[string]string{
					"job_id": "NOMAD_JOB_ID", "app_id": "NOMAD_JOB_ID", "slot": "NOMAD_ALLOC_ID",
					"container_id": "NOMAD_ALLOC_ID", "component": "NOMAD_GROUP_NAME", "index": "NOMAD_ALLOC_INDEX",
					"work_dir": "NOMAD_TASK_DIR", "log_dir": "NOMAD_ALLOC_DIR", "host": "NOMAD_HOST_IP_http",
					"ports.http": "NOMAD_HOST_PORT_http", "envelope.memory_mb": "NOMAD_MEMORY_LIMIT",
					"envelope.vcores": "NOMAD_CPU_CORES", "devices": "NVIDIA_VISIBLE_DEVICES",
				},
			},
		},
		{
			name: "slurm step",
			env: map[string]string{
				"SLURM_JOB_ID": "81", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURMD_NODENAME": "c3",
				"SLURM_CPUS_PER_TASK": "4", "SLURM_MEM_PER_CPU": "1000", "CUDA_VISIBLE_DEVICES": "0,3",
				"SLURM_RESTART_COUNT": "2", "SLURM_CLUSTER_NAME": "lab",
			},
			facts: Facts{Envelope: plan.Envelope{MemoryMB: 3900, VCores: 64}, User: "ada"},
			want: Found{
				Name: Slurm, AppID: "slurm-81", RunID: "81", Index: -1, Rank: 3,
				JobID: "81", Attempt: 3, Slot: "slurm/lab/81/0/3/c3",
				Allocation: plan.Allocation{
					Host: "c3", ContainerID: "81.0.3", KillWindow: 30, User: "ada", Devices: []string{"0", "3"},
					Envelope: plan.Envelope{MemoryMB: 3900, VCores: 4},
				},
				Origins: map[string]string{
					"app_id": "SLURM_JOB_ID", "run": "SLURM_JOB_ID", "container_id": "SLURM_JOB_ID", "rank": "SLURM_PROCID",
					"host": "SLURMD_NODENAME", "envelope.vcores": "SLURM_CPUS_PER_TASK", "envelope.memory_mb": "own cgroup",
					"devices": "CUDA_VISIBLE_DEVICES", "job_id": "SLURM_JOB_ID", "attempt": "SLURM_RESTART_COUNT", "slot": "SLURM_JOB_ID",
				},
			},
		},
		{
			name: "slurm's batch script is no task; its memory of a node with several tasks is not ours alone",
			env: map[string]string{
				"SLURM_JOB_ID": "81", "SLURM_NTASKS_PER_NODE": "2", "SLURM_MEM_PER_NODE": "8000", "SLURM_PROCID": "0",
			},
			want: Found{
				Name: Slurm, AppID: "slurm-81", RunID: "81", Index: -1, Rank: -1, JobID: "81", Attempt: 1,
				Notes:      []string{batchNote},
				Allocation: plan.Allocation{ContainerID: "81.0", KillWindow: 30},
				Origins: map[string]string{
					"app_id": "SLURM_JOB_ID", "run": "SLURM_JOB_ID", "container_id": "SLURM_JOB_ID", "job_id": "SLURM_JOB_ID", "attempt": "SLURM_RESTART_COUNT",
				},
			},
		},
		{
			name: "kubernetes",
			env: map[string]string{
				"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "0", "HOSTNAME": "gang-worker-0-x",
				"REPLICATED_JOB_NAME": "worker", "POD_IP": "10.1.2.3", "POD_UID": "7-7", "RESTART_ATTEMPT": "1",
			},
			want: Found{
				Name: Kubernetes, Component: "worker", Index: 0, Rank: -1, Attempt: 2, Slot: "kubernetes/7-7",
				Allocation: plan.Allocation{Host: "10.1.2.3", ContainerID: "gang-worker-0-x", KillWindow: 30},
				Origins: map[string]string{
					"container_id": "HOSTNAME", "host": "POD_IP", "component": "REPLICATED_JOB_NAME", "index": "JOB_COMPLETION_INDEX",
					"attempt": "RESTART_ATTEMPT", "slot": "POD_UID",
				},
			},
		},
		{
			name: "systemd template unit",
			env: map[string]string{
				"INVOCATION_ID": "abc", "STATE_DIRECTORY": "/var/lib/muster:/x", "LOGS_DIRECTORY": "/var/log/muster",
			},
			facts: Facts{Machine: "m1", Cgroup: "4:memory:/other.service\n1:name=systemd:/system.slice/system-muster.slice/muster@worker-3.service/payload\n"},
			want: Found{
				Name: Systemd, Component: "worker", Index: 3, Rank: -1, WorkDir: "/var/lib/muster", LogDir: "/var/log/muster",
				JobID: "muster@worker-3.service", Slot: "systemd/m1/muster@worker-3.service",
				Allocation: plan.Allocation{ContainerID: "abc", KillWindow: 90},
				Origins: map[string]string{
					"container_id": "INVOCATION_ID", "work_dir": "STATE_DIRECTORY", "log_dir": "LOGS_DIRECTORY",
					"component": "/proc/self/cgroup", "index": "/proc/self/cgroup", "job_id": "/proc/self/cgroup", "slot": "/proc/self/cgroup",
				},
			},
		},
		{
			name:  "a terminal under the user's service manager is a shell",
			env:   map[string]string{"INVOCATION_ID": "abc"},
			facts: Facts{Cgroup: terminalCgroup},
			want:  Found{Name: Shell, Index: -1, Rank: -1},
		},
		{
			name: "an index that is no number is not given",
			env:  map[string]string{"NOMAD_ALLOC_ID": "5f3", "NOMAD_ALLOC_INDEX": "two"},
			want: Found{
				Name: Nomad, Index: -1, Rank: -1, Allocation: plan.Allocation{ContainerID: "5f3", KillWindow: 5},
				Origins: map[string]string{"container_id": "NOMAD_ALLOC_ID"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Allocation.Launcher = string(tt.want.Name)
			if tt.want.Allocation.Ports == nil {
				tt.want.Allocation.Ports = map[string]int{}
			}
			if tt.want.Allocation.Devices == nil {
				tt.want.Allocation.Devices = []string{}
			}
			tt.want.Allocation.Vars = map[string]string{}
			if tt.want.Origins == nil {
				tt.want.Origins = map[string]string{}
			}
			got := Detect(tt.env, tt.facts)
			// the same two for every launcher
			if recognised := got.Name != Shell; recognised != (got.Origins["launcher"] != "") || recognised != (got.Origins["kill_window"] == "assumed for "+string(got.Name)) {
				t.Errorf("origins of launcher and kill window: %v", got.Origins)
			}
			delete(got.Origins, "launcher")
			delete(got.Origins, "kill_window")
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("Detect (-got +want):\n%s", diff)
			}
		})
	}
}

func TestEveryAnswerHasAnOrigin(t *testing.T) {
	env := map[string]string{
		"NOMAD_ALLOC_ID": "a", "NOMAD_GROUP_NAME": "g", "NOMAD_ALLOC_INDEX": "1", "NOMAD_HOST_PORT_p": "2000",
		"NOMAD_HOST_IP_p": "10.0.0.1",
	}
	f := Detect(env, Facts{})
	for what, from := range f.Origins {
		if _, ok := env[from]; !ok && what != "kill_window" { // that is in no variable
			t.Errorf("origin of %s is %s, which is not in the environment", what, from)
		}
	}
	got := slices.Sorted(maps.Keys(f.Origins))
	want := []string{"component", "container_id", "host", "index", "kill_window", "launcher", "ports.p"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("origins (-got +want):\n%s", diff)
	}
}

func TestRelaunches(t *testing.T) {
	got := map[Name]bool{}
	for _, n := range []Name{YARN, Nomad, Slurm, Kubernetes, Systemd, Shell, ""} {
		got[n] = n.Relaunches()
	}
	want := map[Name]bool{YARN: true, Nomad: true, Slurm: true, Kubernetes: true, Systemd: true, Shell: false, "": false}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Relaunches (-got +want):\n%s", diff)
	}
}

func TestUnitInstance(t *testing.T) {
	tests := []struct {
		unit      string
		component string
		index     int
		ok        bool
	}{
		{"muster@worker-3.service", "worker", 3, true},
		{`muster@worker\x2d3.service`, "worker", 3, true},
		{"muster@ps-a-0.service", "ps-a", 0, true},
		{"muster@worker.service", "", -1, false},
		{"nginx@worker-3.service", "", -1, false},
		{"muster.service", "", -1, false},
		{`muster@a\x.service`, "", -1, false},
	}
	for _, tt := range tests {
		c, i, ok := unitInstance(tt.unit)
		if c != tt.component || i != tt.index || ok != tt.ok {
			t.Errorf("unitInstance(%q) = %q, %d, %t, want %q, %d, %t", tt.unit, c, i, ok, tt.component, tt.index, tt.ok)
		}
	}
}

func TestCountList(t *testing.T) {
	for list, want := range map[string]int{"": 0, "4": 1, "0-3,7": 5, "3-1": 0, "a": 0, "1,": 0} {
		if got := countList(list); got != want {
			t.Errorf("countList(%q) = %d, want %d", list, got, want)
		}
	}
}

func TestChooseHost(t *testing.T) {
	named := func(name string, is ...string) HostChoices {
		return HostChoices{Launcher: name, LauncherFrom: "NM_HOST", LauncherIs: is, Source: "127.0.0.1", DefaultRoute: "10.0.0.3"}
	}
	tests := []struct {
		name string
		in   HostChoices
		want string // host, origin, why the launcher's word was not taken
	}{
		{"flag first", HostChoices{Flag: "h", Launcher: "l", LauncherIs: []string{"10.0.0.9"}, Source: "10.0.0.1"}, "h, --host, "},
		{"a person may say loopback", HostChoices{Flag: "127.0.0.1"}, "127.0.0.1, --host, "},
		{"launcher", named("l", "10.0.0.9"), "l, NM_HOST, "},
		{"launcher's address", named("10.0.0.9", "10.0.0.9"), "10.0.0.9, NM_HOST, "},
		{"a name with one address for others", named("l", "127.0.1.1", "10.0.0.9"), "l, NM_HOST, "},
		{"a name of the launcher's alone", named("node7"), `10.0.0.3, default route, NM_HOST is "node7", a name that cannot be looked up here`},
		{"a loopback name", named("localhost", "::1", "127.0.0.1"), `10.0.0.3, default route, NM_HOST is "localhost", which is ::1 and 127.0.0.1, this host alone`},
		{"the host's own name, as Debian has it", named("c1", "127.0.1.1"), `10.0.0.3, default route, NM_HOST is "c1", which is 127.0.1.1, this host alone`},
		{"route", HostChoices{Source: "10.0.0.1", ConsulAgent: "10.0.0.2"}, "10.0.0.1, route to the registry, "},
		{"route is loopback", HostChoices{Source: "127.0.0.1", ConsulAgent: "10.0.0.2"}, "10.0.0.2, local Consul agent, "},
		{"v6 loopback", HostChoices{Source: "::1", ConsulAgent: "0.0.0.0", DefaultRoute: "10.0.0.3"}, "10.0.0.3, default route, "},
		{"embedded stays on the machine", HostChoices{DefaultRoute: "10.0.0.3", Loopback: true}, "127.0.0.1, embedded registry, "},
		{"nothing", HostChoices{Source: "127.0.0.1"}, "error: " + ErrNoHost.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host, err := ChooseHost(tt.in)
			got := host.Address + ", " + host.Origin + ", " + host.Passed
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("ChooseHost = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInherit(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/root", "LC_ALL=C", "PYTHONPATH=/p", "PYTHON_EXE=py", "CONDA_PREFIX=/c", "JAVA_HOME=/j",
		"HADOOP_CONF_DIR=/h", "KRB5CCNAME=/k", "CUDA_HOME=/cu", "NCCL_DEBUG=INFO", "OMP_NUM_THREADS=2",
		"http_proxy=p", "HTTPS_PROXY=q", "AWS_SECRET=s", "TF_CONFIG=old", "MUSTER_INDEX=3", "MUSTER_AGENT_HOST=h",
		"MUSTER_proxy=x", "PATHS=no", "EMPTY", "=x", "KEEP=a=b", "TZ=",
	}
	got := Inherit(environ, []string{"KEEP", "MISSING", "SET=v=w", "MUSTER_INDEX", "MUSTER_ROLE=ps", "TERM=dumb"})
	want := map[string]string{
		"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "PYTHONPATH": "/p", "PYTHON_EXE": "py", "CONDA_PREFIX": "/c",
		"JAVA_HOME": "/j", "HADOOP_CONF_DIR": "/h", "KRB5CCNAME": "/k", "CUDA_HOME": "/cu", "NCCL_DEBUG": "INFO",
		"OMP_NUM_THREADS": "2", "http_proxy": "p", "HTTPS_PROXY": "q", "TZ": "", "KEEP": "a=b", "SET": "v=w", "TERM": "dumb",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Inherit (-got +want):\n%s", diff)
	}
	inImage := map[string]string{
		"LC_ALL": "C", "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "2", "http_proxy": "p", "HTTPS_PROXY": "q", "TZ": "", "PATH": "/mine",
	}
	if diff := cmp.Diff(InheritIntoImage(environ, []string{"PATH=/mine"}), inImage); diff != "" {
		t.Errorf("InheritIntoImage (-got +want):\n%s", diff)
	}
	if got := Inherit(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("Inherit of nothing = %v, want an empty map", got)
	}
}

func FuzzUnit(f *testing.F) {
	f.Add(terminalCgroup)
	f.Add(`0::/muster@a\x2d1.service`)
	f.Fuzz(func(t *testing.T, cgroup string) {
		c, i, ok := unitInstance(unitOf(cgroup))
		if ok && (c == "" || i < 0) {
			t.Errorf("unit in %q: component %q, index %d", cgroup, c, i)
		}
		if strings.Contains(unitOf(cgroup), "/") {
			t.Errorf("unit in %q holds a slash", cgroup)
		}
	})
}
