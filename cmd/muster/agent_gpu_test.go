package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/tests/need"
)

// gpuHost puts a muster-gpu of a mocked host into PATH, and returns what describes the host anew.
func gpuHost(t *testing.T) (describe func(nvmltest.Host)) {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "muster-gpu"), "github.com/muster-agent/muster/tests/gpuhelper")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	file := filepath.Join(dir, "host.json")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(nvmltest.Environment, file)
	return func(h nvmltest.Host) {
		h.First = 300_000_000 + os.Getpid()*10 // devices that nobody else on this machine claims
		text, err := json.Marshal(h)
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// asking is a plan for GPUs in an engine that needs no device nodes.
func asking(n int) plan.Plan {
	return plan.Plan{Limits: plan.Limits{GPUs: n}, Engine: plan.Engine{Name: sandbox.NameProcess}}
}

func TestTakeGPUs(t *testing.T) {
	describe := gpuHost(t)
	first := 300_000_000 + os.Getpid()*10
	mig := func(n int) string { return nvmltest.MIGUUID(first, n) }
	newAgent := func(granted ...string) *agent {
		a := &agent{log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		a.alloc.Devices = granted
		return a
	}
	t.Run("a driver that does not answer is a fault", func(t *testing.T) {
		describe(nvmltest.Host{Die: gpu.OpInventory})
		a := newAgent()
		defer a.close()
		err := a.takeGPUs(t.Context(), asking(1))
		if !fault.Is(err, registry.ClassGPU) || !errors.Is(err, gpu.ErrEnded) {
			t.Errorf("got %v, want class gpu-fault and %v", err, gpu.ErrEnded)
		}
		if a.gpus.helper == nil {
			t.Error("nobody will end the helper")
		}
	})
	t.Run("one that does the second time is none", func(t *testing.T) {
		describe(nvmltest.Host{Die: gpu.OpProcesses, Once: filepath.Join(t.TempDir(), "once")})
		a := newAgent()
		defer a.close()
		if err := a.takeGPUs(t.Context(), asking(2)); err != nil || len(a.gpus.held.Devices) != 2 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("two instances of a GPU pass the gate again, a lost one does not", func(t *testing.T) {
		stranger := []gpu.Process{{PID: 1, UsedMB: 10, Kind: "compute", GPUInstance: 3}}
		describe(nvmltest.Host{MIG: map[int]int{0: 3}, Processes: map[int][]gpu.Process{0: stranger}})
		a := newAgent(mig(0), mig(1))
		defer a.close()
		if err := a.takeGPUs(t.Context(), asking(2)); err != nil {
			t.Fatal(err)
		}
		a.suspectGPU()
		if err := a.gateAgain(); err != nil || a.gpuSuspect {
			t.Errorf("healthy: got %v, suspect %v", err, a.gpuSuspect)
		}
		a.suspectGPU()
		a.gpus.held.Devices[1].Instance = &gpu.MIG{UUID: mig(7), GPUInstance: 8}
		if err := a.gateAgain(); err == nil || !strings.Contains(err.Error(), mig(7)) || !a.gpuSuspect {
			t.Errorf("one gone: got %v, suspect %v", err, a.gpuSuspect)
		}
	})
}

// What happens to a GPU while nothing runs on it holds nobody up, and the next start looks at it.
func TestFaultBetweenStarts(t *testing.T) {
	describe := gpuHost(t)
	describe(nvmltest.Host{})
	a := &agent{log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	defer a.close()
	if err := a.takeGPUs(t.Context(), asking(1)); err != nil {
		t.Fatal(err)
	}
	event := gpu.Event{Kind: gpu.EventXid, Xid: 79, Device: a.gpus.held.Devices[0].UUID}
	a.hearGPU(t.Context(), a.gpus, event)
	if !a.gpuSuspect || !strings.Contains(a.blamed.why, "Xid 79") {
		t.Errorf("suspect %v, blamed %q", a.gpuSuspect, a.blamed.why)
	}
	event.Device = "GPU-of-somebody-else"
	a.gpuSuspect, a.blamed = false, blame{}
	a.hearGPU(t.Context(), a.gpus, event)
	if a.gpuSuspect || a.blamed != (blame{}) {
		t.Errorf("another's GPU: suspect %v, blamed %q", a.gpuSuspect, a.blamed.why)
	}
}

// A fault that is told while a process begins, between the gate and its first moment, ends it then.
func TestFaultWhileItBegins(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), scriptWatchdog)
	defer cancel()
	g, err := sandbox.Process{}.Park(ctx, sandbox.Options{LogDir: filepath.Join(t.TempDir(), "log")})
	if errors.Is(err, guard.ErrNotBuilt) {
		need.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	a := &agent{log: slog.New(slog.NewTextHandler(t.Output(), nil)), guard: g, over: make(chan struct{})}
	granted := grantedGPUs{held: &gpu.Held{Devices: []gpu.Device{{UUID: "GPU-a"}}}}
	a.hearGPU(ctx, granted, gpu.Event{Kind: gpu.EventECC, Device: "GPU-a"})
	if _, err := g.Start(sandbox.Spec{Attempt: 1, Argv: []string{"sleep", "1000"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	a.endOnFaulty(g)
	for {
		select {
		case e := <-g.Events():
			if exited, ok := e.(sandbox.Exited); ok {
				if exited.Exit.Signal != int(syscall.SIGKILL) {
					t.Errorf("it ended by %+v, want SIGKILL", exited.Exit)
				}
				return
			}
		case <-ctx.Done():
			t.Fatal("the process runs on with a faulty GPU")
		}
	}
}

// Where no helper watches, the limit of GPU memory is among those that are not enforced.
func TestUnwatchedMemory(t *testing.T) {
	held := &gpu.Held{Devices: []gpu.Device{{Index: 3, Minor: 3}, {Index: 5, Minor: 5}}}
	before := map[string]string{"vcores": "x"}
	for _, c := range []struct {
		granted grantedGPUs
		cuda    string
		watched bool
	}{
		{grantedGPUs{held: held}, "3,5", false},
		{grantedGPUs{held: held, fenced: true}, "0,1", false},
		{grantedGPUs{held: held, fenced: true, helper: &gpu.Helper{}}, "0,1", true},
	} {
		request := plan.Request{Engine: plan.EngineChoice{Cannot: before}}
		c.granted.tell(&request, false)
		if _, named := request.Engine.Cannot["gpu_memory_mb"]; named == c.watched || request.Engine.Cannot["vcores"] != "x" || len(before) != 1 {
			t.Errorf("watched %v: not held are %v", c.watched, request.Engine.Cannot)
		}
		if got := request.GPUEnv["CUDA_VISIBLE_DEVICES"]; got != c.cuda {
			t.Errorf("fenced %v: CUDA_VISIBLE_DEVICES: got %s, want %s", c.granted.fenced, got, c.cuda)
		}
	}
}

func TestHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nvidia0")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	got := holders("/proc", path)
	if len(got) != 1 || !strings.HasPrefix(got[0], strconv.Itoa(os.Getpid())+" ") {
		t.Errorf("got %q, want this process alone", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := holders("/proc", path); got != nil {
		t.Errorf("after the close: got %q", got)
	}
}
