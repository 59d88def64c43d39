package grant

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
	"testing"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
)

// gpuHost builds a muster-gpu of a mocked host, and returns its path and what describes the host anew.
func gpuHost(t *testing.T) (helper string, describe func(nvmltest.Host)) {
	t.Helper()
	dir := t.TempDir()
	helper = filepath.Join(dir, "muster-gpu")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", helper, "github.com/muster-agent/muster/tests/gpuhelper")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	file := filepath.Join(dir, "host.json")
	t.Setenv(nvmltest.Environment, file)
	return helper, func(h nvmltest.Host) {
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
	helper, describe := gpuHost(t)
	first := 300_000_000 + os.Getpid()*10
	mig := func(n int) string { return nvmltest.MIGUUID(first, n) }
	newGrant := func(t *testing.T, granted ...string) *Grant {
		g := New(slog.New(slog.NewTextHandler(t.Output(), nil)), granted)
		t.Cleanup(g.Close)
		return g
	}
	t.Run("a driver that does not answer is a fault", func(t *testing.T) {
		describe(nvmltest.Host{Die: gpu.OpInventory})
		g := newGrant(t)
		err := g.Take(t.Context(), asking(1), &helper)
		if !fault.Is(err, registry.ClassGPU) || !errors.Is(err, gpu.ErrEnded) {
			t.Errorf("got %v, want class gpu-fault and %v", err, gpu.ErrEnded)
		}
		if g.helper == nil {
			t.Error("nobody will end the helper")
		}
	})
	t.Run("one that does the second time is none", func(t *testing.T) {
		describe(nvmltest.Host{Die: gpu.OpProcesses, Once: filepath.Join(t.TempDir(), "once")})
		g := newGrant(t)
		if err := g.Take(t.Context(), asking(2), &helper); err != nil || len(g.held.Devices) != 2 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it tells which devices are its own, and how busy they are", func(t *testing.T) {
		describe(nvmltest.Host{Busy: map[int]int{1: 80}, UsedMB: map[int]int{1: 3}})
		g := newGrant(t, nvmltest.UUID(first+1))
		if got := g.Loads(t.Context()); got != nil || g.Devices() != nil {
			t.Errorf("before it has any: %+v, %+v", got, g.Devices())
		}
		if err := g.Take(t.Context(), asking(1), &helper); err != nil {
			t.Fatal(err)
		}
		got := g.Loads(t.Context())
		if len(got) != 1 || got[0] != (gpu.Load{ID: nvmltest.UUID(first + 1), Use: 80, Used: 3 << 20, Total: 40960 << 20}) {
			t.Errorf("got %+v", got)
		}
		held := g.Devices()
		if len(held) != 1 || held[0].ID() != nvmltest.UUID(first+1) || held[0].Name != "Mock NVIDIA A100-SXM4-40GB" {
			t.Errorf("holds %+v", held)
		}
	})
	t.Run("two instances of a GPU pass the gate again, a lost one does not", func(t *testing.T) {
		stranger := []gpu.Process{{PID: 1, UsedMB: 10, Kind: "compute", GPUInstance: 3}}
		describe(nvmltest.Host{MIG: map[int]int{0: 3}, Processes: map[int][]gpu.Process{0: stranger}})
		g := newGrant(t, mig(0), mig(1))
		if err := g.Take(t.Context(), asking(2), &helper); err != nil {
			t.Fatal(err)
		}
		g.setSuspect(true)
		if err := g.Fit(t.Context(), nobody); err != nil || g.Suspect() {
			t.Errorf("healthy: got %v, suspect %v", err, g.Suspect())
		}
		g.setSuspect(true)
		g.held.Devices[1].Instance = &gpu.MIG{UUID: mig(7), GPUInstance: 8}
		if err := g.Fit(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), mig(7)) || !g.Suspect() {
			t.Errorf("one gone: got %v, suspect %v", err, g.Suspect())
		}
	})
}

// nobody is a host on which no process is the instance's.
func nobody(int) bool { return false }

// idle is a process that does not run.
type idle struct{ why string }

func (p *idle) Holds(int) bool                             { return false }
func (p *idle) Blame(_ registry.Class, why string, _ bool) { p.why = why }
func (p *idle) EndForGPU(context.Context)                  {}

// What happens to a GPU while nothing runs on it holds nobody up, and the next start looks at it.
func TestFaultBetweenStarts(t *testing.T) {
	helper, describe := gpuHost(t)
	describe(nvmltest.Host{})
	g := New(slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	defer g.Close()
	if err := g.Take(t.Context(), asking(1), &helper); err != nil {
		t.Fatal(err)
	}
	event := gpu.Event{Kind: gpu.EventXid, Xid: 79, Device: g.held.Devices[0].UUID}
	var ours, others idle
	g.hear(t.Context(), &ours, event)
	if !g.Suspect() || !strings.Contains(ours.why, "Xid 79") {
		t.Errorf("suspect %v, blamed %q", g.Suspect(), ours.why)
	}
	event.Device = "GPU-of-somebody-else"
	g.setSuspect(false)
	g.hear(t.Context(), &others, event)
	if g.Suspect() || others.why != "" {
		t.Errorf("another's GPU: suspect %v, blamed %q", g.Suspect(), others.why)
	}
}

// Where no helper watches, the limit of GPU memory is among those that are not enforced.
func TestUnwatchedMemory(t *testing.T) {
	held := &gpu.Held{Devices: []gpu.Device{{Index: 3, Minor: 3}, {Index: 5, Minor: 5}}}
	before := map[string]string{"vcores": "x"}
	for _, c := range []struct {
		granted *Grant
		cuda    string
		watched bool
	}{
		{&Grant{held: held}, "3,5", false},
		{&Grant{held: held, fenced: true}, "0,1", false},
		{&Grant{held: held, fenced: true, helper: &gpu.Helper{}}, "0,1", true},
	} {
		request := plan.Request{Engine: plan.EngineChoice{Cannot: before}}
		c.granted.Tell(&request, false)
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
