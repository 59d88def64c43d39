package known

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
)

const terminalCgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.slice/vte-spawn-1.scope\n"

func TestDetect(t *testing.T) {
	tests := []struct {
		name  string
		env   map[string]string
		facts launcher.Facts
		want  launcher.Found
	}{
		{
			name: "nothing is a shell",
			env:  map[string]string{"HOME": "/root", "CUDA_VISIBLE_DEVICES": "1"},
			want: launcher.Found{Name: launcher.Shell, Index: -1, Rank: -1},
		},
		{
			name: "yarn with an epoch in the container's id",
			env: map[string]string{
				"CONTAINER_ID": "container_e17_1410901177871_0001_01_000005", "NM_HOST": "node7",
				"LOCAL_DIRS": "/nm/a, /nm/b", "LOG_DIRS": "/log/a,/log/b", "USER": "ada", "INVOCATION_ID": "x",
			},
			want: launcher.Found{
				Name: "yarn", AppID: "application_1410901177871_0001", RunID: "application_1410901177871_0001",
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
			want: launcher.Found{
				Name: "yarn", AppID: "application_1_0001", RunID: "application_1_0001", Index: -1, Rank: -1,
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
			name:  "yarn's container executor has closed the GPUs that it did not grant",
			env:   map[string]string{"CONTAINER_ID": "c", "NM_HOST": "n", "NVIDIA_VISIBLE_DEVICES": "all"},
			facts: launcher.Facts{GPUs: map[string]bool{"/dev/nvidia0": false, "/dev/nvidia1": true, "/dev/nvidia2": false, "/dev/nvidia3": true}},
			want: launcher.Found{
				Name: "yarn", Index: -1, Rank: -1,
				Allocation: plan.Allocation{Host: "n", ContainerID: "c", KillWindow: 0.25, Devices: []string{"/dev/nvidia1", "/dev/nvidia3"}},
				Origins:    map[string]string{"container_id": "CONTAINER_ID", "host": "NM_HOST", "devices": "device rules of the container's cgroup"},
			},
		},
		{
			name:  "yarn has closed none, and Docker's container knows its own",
			env:   map[string]string{"CONTAINER_ID": "c", "NM_HOST": "n", "NVIDIA_VISIBLE_DEVICES": "4,6"},
			facts: launcher.Facts{GPUs: map[string]bool{"/dev/nvidia0": true}},
			want: launcher.Found{
				Name: "yarn", Index: -1, Rank: -1,
				Allocation: plan.Allocation{Host: "n", ContainerID: "c", KillWindow: 0.25, Devices: []string{"4", "6"}},
				Origins:    map[string]string{"container_id": "CONTAINER_ID", "host": "NM_HOST", "devices": "NVIDIA_VISIBLE_DEVICES"},
			},
		},
		{
			name:  "yarn has granted none: no device is named, and none can be chosen",
			env:   map[string]string{"CONTAINER_ID": "c", "NM_HOST": "n"},
			facts: launcher.Facts{GPUs: map[string]bool{"/dev/nvidia0": false}},
			want: launcher.Found{
				Name: "yarn", Index: -1, Rank: -1, Allocation: plan.Allocation{Host: "n", ContainerID: "c", KillWindow: 0.25},
				Origins: map[string]string{"container_id": "CONTAINER_ID", "host": "NM_HOST"},
			},
		},
		{
			name: "a container id alone is not yarn",
			env:  map[string]string{"CONTAINER_ID": "container_1_0001_02_000005"},
			want: launcher.Found{Name: launcher.Shell, Index: -1, Rank: -1},
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
			want: launcher.Found{
				Name: "nomad", Component: "worker", Index: 2, Rank: -1, WorkDir: "/n/local", LogDir: "/n/alloc/logs",
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
			facts: launcher.Facts{Envelope: plan.Envelope{MemoryMB: 3900, VCores: 64}, User: "ada"},
			want: launcher.Found{
				Name: "slurm", AppID: "slurm-81", RunID: "81", Index: -1, Rank: 3,
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
			want: launcher.Found{
				Name: "slurm", AppID: "slurm-81", RunID: "81", Index: -1, Rank: -1, JobID: "81", Attempt: 1,
				Notes:      []string{"this is Slurm's batch script, no task of srun's: SLURM_PROCID is no rank here, a free index is claimed unless one is said"},
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
				"POD_WORK_VOLUME": "/var/lib/muster",
			},
			want: launcher.Found{
				Name: "kubernetes", Component: "worker", Index: 0, Rank: -1, Attempt: 2, Slot: "kubernetes/7-7",
				Volume:     "/var/lib/muster",
				Allocation: plan.Allocation{Host: "10.1.2.3", ContainerID: "gang-worker-0-x", KillWindow: 30},
				Origins: map[string]string{
					"container_id": "HOSTNAME", "host": "POD_IP", "component": "REPLICATED_JOB_NAME", "index": "JOB_COMPLETION_INDEX",
					"attempt": "RESTART_ATTEMPT", "slot": "POD_UID", "volume": "POD_WORK_VOLUME",
				},
			},
		},
		{
			name: "systemd template unit",
			env: map[string]string{
				"INVOCATION_ID": "abc", "STATE_DIRECTORY": "/var/lib/muster:/x", "LOGS_DIRECTORY": "/var/log/muster",
			},
			facts: launcher.Facts{Machine: "m1", Cgroup: "4:memory:/other.service\n1:name=systemd:/system.slice/system-muster.slice/muster@worker-3.service/payload\n"},
			want: launcher.Found{
				Name: "systemd", Component: "worker", Index: 3, Rank: -1, WorkDir: "/var/lib/muster", LogDir: "/var/log/muster",
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
			facts: launcher.Facts{Cgroup: terminalCgroup},
			want:  launcher.Found{Name: launcher.Shell, Index: -1, Rank: -1},
		},
		{
			name: "an index that is no number is not given",
			env:  map[string]string{"NOMAD_ALLOC_ID": "5f3", "NOMAD_ALLOC_INDEX": "two"},
			want: launcher.Found{
				Name: "nomad", Index: -1, Rank: -1, Allocation: plan.Allocation{ContainerID: "5f3", KillWindow: 5},
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
			if recognised := got.Name != launcher.Shell; recognised != (got.Origins["launcher"] != "") || recognised != (got.Origins["kill_window"] == "assumed for "+string(got.Name)) {
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
	f := Detect(env, launcher.Facts{})
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
	got := map[launcher.Name]bool{}
	for _, n := range []launcher.Name{"yarn", "nomad", "slurm", "kubernetes", "systemd", launcher.Shell, ""} {
		got[n] = n.Relaunches()
	}
	want := map[launcher.Name]bool{"yarn": true, "nomad": true, "slurm": true, "kubernetes": true, "systemd": true, launcher.Shell: false, "": false}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Relaunches (-got +want):\n%s", diff)
	}
}
