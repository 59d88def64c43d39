package grant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// patience bounds the questions to the driver before a start.
const patience = 60 * time.Second

// Grant are the devices of one instance, with what a process needs to use them. Before Take it is none.
type Grant struct {
	log     *slog.Logger
	granted []string // devices that the launcher named

	helper    *gpu.Helper // nil: no muster-gpu, or no driver that it could ask
	held      *gpu.Held
	injection gpu.Injection
	fenced    bool // the engine keeps the process off all others

	watching sync.WaitGroup

	mu      sync.Mutex
	devices []gpu.Device // as they were when they were taken
	suspect bool         // a device asked for a reset since it was looked at last
}

// New grants nothing yet. granted are the devices that the launcher named.
func New(log *slog.Logger, granted []string) *Grant { return &Grant{log: log, granted: granted} }

// Take claims the devices that the plan asks for, and refuses those that are not fit. helper is the path of muster-gpu;
// nil: there is none. Whatever it returns, Close gives back what has been taken.
func (g *Grant) Take(ctx context.Context, p plan.Plan, helper *string) error {
	if p.Limits.GPUs == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g.fenced = p.Engine.Name != sandbox.NameProcess
	devices, err := g.list(ctx, helper)
	if err != nil {
		return fault.GPU(fmt.Errorf("%s asked for: %w", appdef.Counted(p.Limits.GPUs, "GPU"), err))
	}
	want := gpu.Want{Count: p.Limits.GPUs, Type: p.Limits.GPUType, Granted: g.granted}
	if g.held, err = gpu.Claim(ctx, devices, want); err != nil {
		return fault.GPU(err)
	}
	g.mu.Lock()
	g.devices = slices.Clone(g.held.Devices)
	g.mu.Unlock()
	if len(g.held.Shared) > 0 {
		g.log.Warn("the launcher granted devices that another agent holds", "devices", strings.Join(g.held.Shared, ","))
	}
	for _, id := range slices.Sorted(maps.Keys(g.held.Foreign)) {
		g.log.Warn("GPU taken that another user announces", "device", id, "by", g.held.Foreign[id])
	}
	if g.fenced {
		if g.injection, err = gpu.Inject(ctx, g.held.Devices,
			gpu.InjectOptions{Image: p.Root.Kind == plan.RootImage}); err != nil {
			return fault.GPU(err)
		}
	}
	for _, w := range g.injection.Warnings {
		g.log.Warn("GPU injection limited", "cause", w)
	}
	g.log.Info("GPUs taken", "devices", strings.Join(g.held.IDs(), ","), "by", g.injection.Source)
	return g.gate(g.held.Devices, nil)
}

// list asks muster-gpu; where there is none, or it finds no driver, the device nodes. A driver that it finds and that
// does not answer is a fault: on nodes alone a sick device would pass.
func (g *Grant) list(ctx context.Context, path *string) ([]gpu.Device, error) {
	why := gpu.ErrNoHelper
	if path != nil {
		if g.helper, why = gpu.Open(ctx, *path, g.log); why == nil {
			return g.inventory(ctx)
		}
		if !errors.Is(why, gpu.ErrNoHelper) && !errors.Is(why, gpu.ErrNoDriver) {
			return nil, why
		}
	}
	inventory, err := gpu.NodesInventory("/")
	if err != nil {
		return nil, errors.Join(why, err)
	}
	if len(inventory.Devices) == 0 {
		return nil, fmt.Errorf("no GPU here: %w, and no device node in /dev", why)
	}
	g.log.Warn("GPUs by device nodes only: no choice by links or load, no health, no faults while running", "cause",
		why)
	return inventory.Devices, nil
}

// inventory asks once more when the helper has ended or hung: its successor may do better.
func (g *Grant) inventory(ctx context.Context) ([]gpu.Device, error) {
	inventory, err := g.helper.Inventory(ctx)
	if errors.Is(err, gpu.ErrHung) || errors.Is(err, gpu.ErrEnded) {
		g.log.Warn("muster-gpu failed, asking its successor", "err", err)
		inventory, err = g.helper.Inventory(ctx)
	}
	return inventory.Devices, err
}

// gate refuses devices that are faulty or in use by strangers, with the finding.
func (g *Grant) gate(devices []gpu.Device, ours func(pid int) bool) error {
	var refused []string
	for _, f := range gpu.Gate(devices, gpu.Policy{Ours: ours, Shared: len(g.granted) > 0}) {
		if f.Refuses() {
			refused = append(refused, f.String())
			continue
		}
		g.log.Warn("GPU finding", "finding", f.String())
	}
	if refused != nil {
		return fault.GPU(fmt.Errorf("GPU not fit: %s", strings.Join(refused, "; ")))
	}
	return nil
}

// Fit refuses devices that asked for a reset and are not fit, before anything starts on them once more. ours are the
// processes that may still hold them.
func (g *Grant) Fit(ctx context.Context, ours func(pid int) bool) error {
	if !g.Suspect() {
		return nil
	}
	// A start is not cancelled: only the driver's answer bounds this.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	all, err := g.inventory(ctx)
	if err != nil {
		return fault.GPU(fmt.Errorf("look at the GPU after its fault: %w", err))
	}
	devices, missing := g.held.Now(all)
	if len(missing) > 0 {
		return fault.GPU(fmt.Errorf("GPU not fit: %s: not there any more after a fault: restart the host",
			strings.Join(missing, ", ")))
	}
	if err := g.gate(devices, ours); err != nil {
		return err
	}
	g.setSuspect(false)
	return nil
}

// Suspect tells that a device asked for a reset since it was looked at last.
func (g *Grant) Suspect() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.suspect
}

func (g *Grant) setSuspect(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspect = on
}

// Close gives the devices to others and ends the helper. The process and all that it left are dead by now: who still
// holds memory there is named, and whoever comes next is kept from the device by the same finding.
func (g *Grant) Close() {
	if g.held != nil && g.helper != nil {
		g.nameHolders()
	}
	if g.held != nil {
		if err := g.held.Release(); err != nil {
			g.log.Warn("GPUs not released", "err", err)
		}
	}
	if g.helper != nil {
		if err := g.helper.Close(); err != nil {
			g.log.Warn("muster-gpu not ended", "err", err)
		}
	}
	g.watching.Wait()
	for _, n := range g.injection.Nodes { // muster-gpu had them open as well
		if slices.Contains(sharedNodes, filepath.Base(n.HostPath)) {
			continue
		}
		for _, holder := range holders("/proc", n.HostPath) {
			g.log.Warn("device is held after the end", "device", n.HostPath, "process", holder)
		}
	}
}

// sharedNodes are those that all users of a driver have open.
var sharedNodes = []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}

// holders are the processes, by number and name, that have a file open; those that may not be looked at are left out.
func holders(proc, path string) []string {
	open, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	if err != nil {
		return nil // only of a pattern that is none
	}
	var found []string
	for _, fd := range open {
		if to, err := os.Readlink(fd); err != nil || to != path {
			continue
		}
		dir := filepath.Dir(filepath.Dir(fd))
		name, _ := os.ReadFile(filepath.Join(dir, "comm")) // it may have ended
		if text := filepath.Base(dir) + " " + strings.TrimSpace(string(name)); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// Loads are how busy the devices are, in their order; nil: there are none, or the driver does not answer.
func (g *Grant) Loads(ctx context.Context) []gpu.Load {
	if g.held == nil || g.helper == nil {
		return nil
	}
	known, err := g.helper.Loads(ctx)
	if err != nil {
		return nil
	}
	var all []gpu.Load
	for _, id := range g.held.IDs() {
		if l, ok := known[id]; ok {
			all = append(all, l)
		}
	}
	return all
}

// lastPatience bounds the question who holds memory at the end.
const lastPatience = 10 * time.Second

// nameHolders says who holds memory on devices that should be free.
func (g *Grant) nameHolders() {
	// Close follows the end of every context: only the driver's answer bounds this.
	ctx, cancel := context.WithTimeout(context.Background(), lastPatience)
	defer cancel()
	byDevice, err := g.helper.Processes(ctx)
	if err != nil {
		g.log.Warn("holders of GPU memory not read", "err", err)
		return
	}
	for _, d := range g.held.Devices {
		for _, p := range d.Users(byDevice[d.UUID]) {
			g.log.Warn("GPU memory is held after the end", "device", d.ID(), "pid", p.PID, "mb", p.UsedMB)
		}
	}
}

// Tell puts into a plan's question which devices there are and what the process is told of them.
func (g *Grant) Tell(request *plan.Request, inContainer bool) {
	if g.held == nil {
		return
	}
	request.Allocation.Devices = g.held.IDs()
	request.GPUEnv = gpu.Env(g.held.Devices, g.fenced)
	if g.helper == nil { // there may be one that does not run here
		request.Engine.Cannot = maps.Clone(request.Engine.Cannot)
		if request.Engine.Cannot == nil {
			request.Engine.Cannot = map[string]string{}
		}
		request.Engine.Cannot["gpu_memory_mb"] = "muster-gpu, which watches it, does not run here or finds no driver"
	}
	if !inContainer {
		return
	}
	env := maps.Clone(g.injection.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, request.Inherited)
	request.Inherited, request.LibraryDirs = env, g.injection.LibraryDirs
}

// Devices are those that the instance holds, or held at its end. It may be asked at any time.
func (g *Grant) Devices() []gpu.Device {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.devices
}

// Nodes are the device nodes that a container needs.
func (g *Grant) Nodes() []container.Node {
	var all []container.Node
	for _, n := range g.injection.Nodes {
		all = append(all, container.Node{
			Path: n.Path, Type: rune(n.Type[0]), Major: n.Major, Minor: n.Minor,
			Mode: uint32(n.Mode.Perm()), UID: n.UID, GID: n.GID,
		})
	}
	return all
}

// Mounts are the driver's files that a container needs.
func (g *Grant) Mounts() []container.Mount {
	var all []container.Mount
	for _, m := range g.injection.Mounts {
		all = append(all, container.Mount{From: m.From, To: m.To, ReadOnly: m.ReadOnly, Options: m.Options})
	}
	return all
}

// Hooks are what runs when a container is made.
func (g *Grant) Hooks() []container.Hook {
	var all []container.Hook
	for _, h := range g.injection.Hooks {
		all = append(all, container.Hook{Stage: h.Stage, Path: h.Path, Args: h.Args, Env: h.Env, Timeout: h.Timeout})
	}
	return all
}

// Groups are the groups that a process needs to open the devices.
func (g *Grant) Groups() []uint32 { return g.injection.GIDs }

// process is what a Grant does to the instance's process.
type process interface {
	// Holds tells that a process of this host is one of the instance's.
	Holds(pid int) bool
	// Blame keeps what was seen to go wrong; ending tells that the process is ended for it.
	Blame(class registry.Class, why string, ending bool)
	// EndForGPU kills the process, and waits until it has ended or ctx ends.
	EndForGPU(ctx context.Context)
}

// Watch hears of faults of the devices until ctx ends, and holds processes to muster.gpu.memory. What happens then is
// found in the next exit. Close waits for its goroutines.
func (g *Grant) Watch(ctx context.Context, p plan.Plan, process process) {
	if g.helper == nil {
		return
	}
	events := g.helper.Watch(ctx)
	g.watching.Go(func() {
		for e := range events {
			g.hear(ctx, process, e)
		}
	})
	if p.Limits.GPUMemoryMB == 0 {
		return
	}
	watchdog := gpu.Watchdog{Devices: g.held.Devices, LimitMB: p.Limits.GPUMemoryMB, Ours: process.Holds}
	g.watching.Go(func() {
		for ctx.Err() == nil {
			over, err := watchdog.Run(ctx, g.helper)
			if err != nil {
				return
			}
			process.Blame(registry.ClassOOM, fmt.Sprintf("process %d holds %d MB of GPU memory, muster.gpu.memory is "+
				"%d MB",
				over.PID, over.UsedMB, p.Limits.GPUMemoryMB), true)
			process.EndForGPU(ctx)
		}
	})
}

// hear acts on what the driver says of a device of ours.
func (g *Grant) hear(ctx context.Context, process process, e gpu.Event) {
	if !g.held.Concerns(e) {
		return
	}
	g.log.Warn("GPU fault", "device", e.Device, "finding", e.Finding().String())
	switch e.Class() {
	case gpu.RestartApp: // the process has lost its context: it ends by itself, or its framework recovers
		process.Blame(registry.ClassGPU, e.Finding().String(), false)
	case gpu.ResetGPU:
		g.setSuspect(true)
		process.Blame(registry.ClassGPU, e.Finding().String(), true)
		process.EndForGPU(ctx)
	case gpu.Ignore, gpu.InUse:
	}
}
