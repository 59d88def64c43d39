package confine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/tests/need"
)

// Without GPU and driver nothing but the wish for one fails, in words.
func TestNoGPU(t *testing.T) {
	need.Root(t)
	t.Parallel()
	if len(glob(t, "/dev/nvidia[0-9]*")) > 0 {
		t.Skip("there are GPUs here: make test-gpu has the tests of that")
	}
	newJob(t, "true", settings{"yarn.io/gpu": "1"}).run().
		fails(t, registry.ClassGPU, 75, "1 GPU asked for: no GPU here", "no NVIDIA driver is installed here", "no device node in /dev")
}

// gpus is a host with 8 GPUs that are not there.
type gpus struct {
	t     *testing.T
	first int
	file  string // what is wrong with them
	host  nvmltest.Host
}

func newGPUs(t *testing.T, host nvmltest.Host) *gpus {
	t.Helper()
	g := &gpus{t: t, first: firstGPU(), host: host}
	g.host.First = g.first
	g.file = filepath.Join(t.TempDir(), "host.json")
	g.describe()
	return g
}

func (g *gpus) describe() {
	g.t.Helper()
	text, err := json.Marshal(g.host)
	if err == nil {
		err = os.WriteFile(g.file, text, 0o644)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// job is one that runs on the host.
func (g *gpus) job(command string, more settings) *job {
	g.t.Helper()
	self, err := os.Executable()
	if err != nil {
		g.t.Fatal(err)
	}
	// /dev is this host's own: there is room for further nodes
	j := newJob(g.t, command, with(settings{"muster.env.NODES": "/dev"}, more))
	j.muster, j.wrap = mocked, []string{self, hostVerb, strconv.Itoa(g.first)}
	j.env = append(j.env, nvmltest.Environment+"="+g.file)
	return j.nodeMaker()
}

// number is that of the device with a UUID.
func (g *gpus) number(uuid string) int {
	g.t.Helper()
	for i := range 8 {
		if uuid == nvmltest.UUID(g.first+i) {
			return g.first + i
		}
	}
	g.t.Errorf("%q is none of this host's GPUs", uuid)
	return -1
}

// The stories of GPUs, in the engines that have them. The process engine names devices and holds nobody off them.
func TestGPUs(t *testing.T) {
	need.Root(t)
	for name, story := range map[string]func(t *testing.T, engine string){
		"disjoint":                     func(t *testing.T, engine string) { gpusDisjoint(t, engine, false) },
		"disjoint with the host's ids": func(t *testing.T, engine string) { gpusDisjoint(t, engine, true) },
		"beside one without":           gpusBesideNone,
		"type":                         gpuTypes,
		"granted":                      gpuGranted,
		"gate":                         gpuGate,
		"faults":                       gpuFaults,
		"memory":                       gpuMemory,
	} {
		for _, engine := range engines() {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				story(t, engine)
			})
		}
	}
}

const told = `echo num $GPU_NUM; echo cuda $CUDA_VISIBLE_DEVICES; echo nvidia $NVIDIA_VISIBLE_DEVICES; mkfifo hold; echo here; cat hold`

// gpusDisjoint: two take four each, and who comes third is told who has them. The host's root makes nodes of the
// others.
func gpusDisjoint(t *testing.T, engine string, hostIDs bool) {
	g := newGPUs(t, nvmltest.Host{})
	nodes := "."
	if hostIDs {
		nodes = "/dev"
	}
	j := g.job(`python3 app/definition/package/files/devices.py $(for i in 0 1 2 3 4 5 6 7; do n=$((`+strconv.Itoa(g.first)+`+i)); echo 195:$n /dev/nvidia$n; done) >devices; ls /dev | grep '^nvidia[0-9]' >nodes; `+told,
		settings{"yarn.io/gpu": "4", "yarn.component.instances": "2", "muster.env.NODES": nodes})
	if hostIDs {
		j.hostIDs()
	}
	p := j.begin("--engine", engine)
	var all []int
	for _, worker := range []string{"worker-0", "worker-1"} {
		var out string
		await(t, worker+" here", func() bool {
			out = read(filepath.Join(j.work, "log", worker, "stdout.log"))
			_, ok := lineOf(out, "here")
			return ok
		})
		cuda, _ := lineOf(out, "cuda")
		has(t, out, settings{"num": "4", "nvidia": cuda})
		var own []int
		for uuid := range strings.SplitSeq(cuda, ",") {
			own = append(own, g.number(uuid))
		}
		all = append(all, own...)
		g.devices(filepath.Join(j.work, worker), own, engine, hostIDs)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 8 {
		t.Errorf("the two have %v, want each of the 8 once", all)
	}
	third := g.job("true", settings{"yarn.io/gpu": "1"})
	third.run("--engine", engine).fails(t, registry.ClassGPU, 75, "want 1, free 0", "held by another agent")
	for _, worker := range []string{"worker-0", "worker-1"} {
		if err := os.WriteFile(filepath.Join(j.work, worker, "hold"), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	third.app += "x"
	if e := third.run("--engine", engine); e.code != 0 {
		t.Errorf("when all were free again: exit code %d: %s", e.code, e.Cause)
	}
}

// gpusBesideNone: a gang of a parameter server without GPUs and a worker with two, started by a launcher whose grant
// both inherit. The worker sees its own, the server none.
func gpusBesideNone(t *testing.T, engine string) {
	g := newGPUs(t, nvmltest.Host{})
	j := g.job(`python3 app/definition/package/files/devices.py /dev/nvidia`+strconv.Itoa(g.first)+` >devices; echo num $GPU_NUM; echo cuda "<$CUDA_VISIBLE_DEVICES>"; echo nvidia "<$NVIDIA_VISIBLE_DEVICES>"; mkfifo hold; echo here; cat hold`, nil)
	components := map[string]settings{"ps": {}, "worker": {"yarn.io/gpu": "2"}}
	resources, own := object{}, object{}
	var named []any
	for i, name := range slices.Sorted(maps.Keys(components)) {
		named = append(named, object{"name": name, "category": "SLAVE"})
		own[name] = object{}
		resources[name] = with(settings{
			"yarn.role.priority": strconv.Itoa(i + 1), "yarn.component.instances": "1", "yarn.memory": "64", "yarn.vcores": "1",
		}, components[name])
	}
	j.change("metainfo.json", func(file object) { file["application"].(object)["components"] = named })
	j.change("appConfig.default.json", func(file object) { file["components"] = own })
	j.change("resources.default.json", func(file object) { file["components"] = resources })
	both := nvmltest.UUID(g.first) + "," + nvmltest.UUID(g.first+1)
	j.env = append(j.env, "CUDA_VISIBLE_DEVICES="+both, "NVIDIA_VISIBLE_DEVICES="+both)
	p := j.begin("--engine", engine)
	denied := map[string]string{"container": "ENOENT", "cgroup": "EPERM", "process": "ENXIO"}[engine]
	node := fmt.Sprintf("/dev/nvidia%d", g.first)
	for instance, want := range map[string]settings{
		"ps-0":     {"num": "0", "cuda": "<>", "nvidia": "<>"},
		"worker-0": {"num": "2", "cuda": "<" + both + ">", "nvidia": "<" + both + ">"},
	} {
		var out string
		await(t, instance+" here", func() bool {
			out = read(filepath.Join(j.work, "log", instance, "stdout.log"))
			_, ok := lineOf(out, "here")
			return ok
		})
		has(t, out, want)
		opens := "ENXIO"
		if instance == "ps-0" {
			opens = denied
		}
		has(t, read(filepath.Join(j.work, instance, "devices")), settings{node: opens})
	}
	if err := os.WriteFile(filepath.Join(j.work, "worker-0", "hold"), nil, 0); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// devices asserts what a worker with these GPUs could open. At those that may be opened no driver answers.
func (g *gpus) devices(folder string, own []int, engine string, hostIDs bool) {
	g.t.Helper()
	want, nodes := settings{}, ""
	for i := range 8 {
		n := g.first + i
		opens := "EPERM"
		if slices.Contains(own, n) || engine == "process" {
			opens = "ENXIO"
		}
		if hostIDs {
			want[fmt.Sprintf("open-195:%d", n)] = opens
		} else {
			want[fmt.Sprintf("make-195:%d", n)] = "EPERM"
		}
		if slices.Contains(own, n) || engine != "container" {
			nodes += fmt.Sprintf("nvidia%d\n", n)
		} else {
			opens = "ENOENT"
		}
		want[fmt.Sprintf("/dev/nvidia%d", n)] = opens
	}
	has(g.t, read(filepath.Join(folder, "devices")), want)
	if got := read(filepath.Join(folder, "nodes")); got != nodes {
		g.t.Errorf("in /dev are %q, want %q", got, nodes)
	}
}

func gpuTypes(t *testing.T, engine string) {
	g := newGPUs(t, nvmltest.Host{Model: "h100"})
	for wanted, fits := range map[string]bool{"H100": true, "nvidia h100": true, "Tesla V100": false} {
		j := g.job("echo num $GPU_NUM", settings{"yarn.io/gpu": "1", "muster.gpu.type": wanted})
		e := j.run("--engine", engine)
		if !fits {
			e.fails(t, registry.ClassGPU, 75, wanted, "H100")
			continue
		}
		if e.code != 0 {
			t.Errorf("type %q: exit code %d: %s", wanted, e.code, e.Cause)
		}
		has(t, j.log("stdout.log"), settings{"num": "1"})
	}
}

// gpuGate: a faulty device is nobody's, and the finding is in the verdict.
func gpuGate(t *testing.T, engine string) {
	g := newGPUs(t, nvmltest.Host{Faults: nvmltest.Faults{DoubleBit: map[int]uint64{2: 3}}})
	j := g.job("true", settings{"yarn.io/gpu": "8"})
	j.run("--engine", engine).fails(t, registry.ClassGPU, 75, "GPU 2", "double-bit memory errors")
	healthy := g.job("echo nvidia $NVIDIA_VISIBLE_DEVICES", settings{"yarn.io/gpu": "7"})
	if out := healthy.succeeds("--engine", engine); strings.Contains(out, nvmltest.UUID(g.first+2)) || strings.Count(out, ",") != 6 {
		t.Errorf("seven healthy ones: got %s", out)
	}
}

// gpuGranted: what a launcher has granted is taken and nothing else, and refused by name where it is not fit.
func gpuGranted(t *testing.T, engine string) {
	g := newGPUs(t, nvmltest.Host{Faults: nvmltest.Faults{DoubleBit: map[int]uint64{2: 3}}})
	host := newRegistry(t)
	agent := func(i int) (*job, int) {
		j := g.job("echo nvidia $NVIDIA_VISIBLE_DEVICES", settings{"yarn.io/gpu": "1"})
		j.env = append(j.env, "SLURM_JOB_ID=1", "SLURM_PROCID=0", "CUDA_VISIBLE_DEVICES="+nvmltest.UUID(g.first+i))
		return j, host.agent(j, "--engine", engine).wait()
	}
	j, code := agent(5)
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	has(t, j.log("stdout.log"), settings{"nvidia": nvmltest.UUID(g.first + 5)})
	j, code = agent(2)
	var x struct{ Verdict registry.Verdict }
	j.must(json.Unmarshal([]byte(j.log("exit.json")), &x))
	if code != 75 || x.Verdict.Class != registry.ClassGPU || !strings.Contains(x.Verdict.Cause, "double-bit memory errors") {
		t.Errorf("a faulty grant: exit code %d, %s: %s, want 75, gpu-fault and the finding", code, x.Verdict.Class, x.Verdict.Cause)
	}
	host.end()
}

// gpuFaults: what the driver says while the process runs.
func gpuFaults(t *testing.T, engine string) {
	for name, c := range map[string]struct {
		event  nvmltest.Trigger
		exit   string // of the process, once it goes on; "" where it does not
		class  registry.Class
		code   int
		phrase string
	}{
		"79 ends it":            {nvmltest.Trigger{Kind: gpu.EventXid, Xid: 79}, "", registry.ClassGPU, 75, "Xid 79 fallen off the bus"},
		"31 explains its exit":  {nvmltest.Trigger{Kind: gpu.EventXid, Xid: 31}, "1", registry.ClassGPU, 75, "Xid 31"},
		"31 and a good end":     {nvmltest.Trigger{Kind: gpu.EventXid, Xid: 31}, "0", registry.ClassNone, 0, ""},
		"43 means nothing":      {nvmltest.Trigger{Kind: gpu.EventXid, Xid: 43}, "1", registry.ClassApp, 1, "exited with 1"},
		"double-bit ends it":    {nvmltest.Trigger{Kind: gpu.EventECC}, "", registry.ClassGPU, 75, "double-bit"},
		"not of this process's": {nvmltest.Trigger{Device: 7, Kind: gpu.EventXid, Xid: 79}, "1", registry.ClassApp, 1, "exited with 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trigger, after := c.event, nvmltest.Trigger{Kind: gpu.EventXid, Xid: 43}
			trigger.File, after.File = filepath.Join(t.TempDir(), "now"), filepath.Join(t.TempDir(), "after")
			g := newGPUs(t, nvmltest.Host{Events: []nvmltest.Trigger{trigger, after}})
			j := g.job("mkfifo hold; echo here; cat hold; exit "+c.exit, settings{"yarn.io/gpu": "1"})
			p := j.begin("--engine", engine)
			j.says("here")
			j.must(os.WriteFile(trigger.File, nil, 0o600))
			if c.exit != "" {
				// Events come in order: when the second is told the first has been heard.
				j.must(os.WriteFile(after.File, nil, 0o600))
				await(t, "word of the event", func() bool { return strings.Contains(j.log("agent.log"), "Xid 43") })
				j.release()
			}
			e := j.end(p)
			if c.class == registry.ClassNone {
				if e.code != 0 {
					t.Errorf("exit code %d: %s, want 0", e.code, e.Cause)
				}
				return
			}
			e.fails(t, c.class, c.code, c.phrase)
		})
	}
}

// gpuMemory: a process that holds more than muster.gpu.memory is ended and named.
func gpuMemory(t *testing.T, engine string) {
	g := newGPUs(t, nvmltest.Host{})
	j := g.job("mkfifo hold; echo here; cat hold", settings{"yarn.io/gpu": "1", "muster.gpu.memory": "1000"})
	p := j.begin("--engine", engine)
	j.says("here")
	var pid int
	await(t, "the program's process", func() bool { // it comes after the shell's word
		for _, one := range j.processes() {
			if strings.HasPrefix(read(fmt.Sprintf("/proc/%d/cmdline", one)), "cat\x00") {
				pid = one
			}
		}
		return pid != 0
	})
	g.host.Processes = map[int][]gpu.Process{0: {{PID: pid, UsedMB: 1500, Kind: "compute", GPUInstance: -1}}}
	g.describe()
	g.endHelper(j)
	e := j.end(p)
	e.fails(t, registry.ClassOOM, 137, fmt.Sprintf("process %d holds 1500 MB of GPU memory, muster.gpu.memory is 1000 MB", pid))
}

// endHelper ends a job's muster-gpu: the next one looks at the host anew.
func (g *gpus) endHelper(j *job) {
	g.t.Helper()
	for _, file := range glob(g.t, "/proc/[0-9]*/environ") {
		dir := filepath.Dir(file)
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || filepath.Base(exe) != "muster-gpu" || !strings.Contains(read(file), g.file) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		j.must(err)
		helper, err := os.FindProcess(pid)
		j.must(err)
		j.must(helper.Kill())
	}
}
