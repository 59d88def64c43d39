package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// gpuPatience bounds the questions to the driver before a start.
const gpuPatience = 60 * time.Second

// grantedGPUs are the devices of this instance, with what a process needs to use them. The zero value is none.
type grantedGPUs struct {
	helper    *gpu.Helper // nil: no muster-gpu, or no driver that it could ask
	held      *gpu.Held
	injection gpu.Injection
	fenced    bool // the engine keeps the process off all others
}

// takeGPUs claims the devices that the plan asks for, and refuses those that are not fit.
func (a *agent) takeGPUs(ctx context.Context, p plan.Plan) error {
	if p.Limits.GPUs == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gpuPatience)
	defer cancel()
	g := grantedGPUs{fenced: p.Engine.Name != sandbox.NameProcess}
	a.atEnd(a.giveGPUs)
	devices, err := a.listGPUs(ctx, &g)
	a.setGPUs(g)
	if err != nil {
		return fault.GPU(fmt.Errorf("%s asked for: %w", appdef.Counted(p.Limits.GPUs, "GPU"), err))
	}
	want := gpu.Want{Count: p.Limits.GPUs, Type: p.Limits.GPUType, Granted: a.alloc.Devices}
	if g.held, err = gpu.Claim(ctx, devices, want); err != nil {
		return fault.GPU(err)
	}
	a.setGPUs(g)
	if len(g.held.Shared) > 0 {
		a.log.Warn("the launcher granted devices that another agent holds", "devices", strings.Join(g.held.Shared, ","))
	}
	if g.fenced {
		if g.injection, err = gpu.Inject(g.held.Devices, gpu.InjectOptions{Image: p.Root.Kind == plan.RootImage}); err != nil {
			return fault.GPU(err)
		}
		a.setGPUs(g)
	}
	for _, w := range g.injection.Warnings {
		a.log.Warn("GPUs in a container", "cause", w)
	}
	a.log.Info("GPUs taken", "devices", strings.Join(g.held.IDs(), ","), "by", g.injection.Source)
	return a.gate(g.held.Devices, nil)
}

// setGPUs keeps what has been taken so far: giveGPUs gives it back, whatever fails next.
func (a *agent) setGPUs(g grantedGPUs) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gpus = g
}

// listGPUs asks muster-gpu; where there is none, or it finds no driver, the device nodes. A driver that it finds and that
// does not answer is a fault: on nodes alone a sick device would pass.
func (a *agent) listGPUs(ctx context.Context, g *grantedGPUs) ([]gpu.Device, error) {
	why := gpu.ErrNoHelper
	if path := gpuHelper(); path != nil {
		if g.helper, why = gpu.Open(ctx, *path, a.log); why == nil {
			return a.inventory(ctx, g.helper)
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
	a.log.Warn("GPUs by device nodes only: no choice by links or load, no health, no faults while running", "cause", why)
	return inventory.Devices, nil
}

// inventory asks once more when the helper has ended or hung: its successor may do better.
func (a *agent) inventory(ctx context.Context, helper *gpu.Helper) ([]gpu.Device, error) {
	inventory, err := helper.Inventory(ctx)
	if errors.Is(err, gpu.ErrHung) || errors.Is(err, gpu.ErrEnded) {
		a.log.Warn("ask muster-gpu again", "err", err)
		inventory, err = helper.Inventory(ctx)
	}
	return inventory.Devices, err
}

// gate refuses devices that are faulty or in use by strangers, with the finding.
func (a *agent) gate(devices []gpu.Device, ours func(pid int) bool) error {
	var refused []string
	for _, f := range gpu.Gate(devices, gpu.Policy{Ours: ours, Shared: len(a.alloc.Devices) > 0}) {
		if f.Refuses() {
			refused = append(refused, f.String())
			continue
		}
		a.log.Warn("GPU", "finding", f.String())
	}
	if refused != nil {
		return fault.GPU(fmt.Errorf("GPU not fit: %s", strings.Join(refused, "; ")))
	}
	return nil
}

// gateAgain looks at devices that asked for a reset before anything starts on them once more.
func (a *agent) gateAgain() error {
	a.mu.Lock()
	g, suspect, guard := a.gpus, a.gpuSuspect, a.guard
	a.mu.Unlock()
	if !suspect {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), gpuPatience)
	defer cancel()
	all, err := a.inventory(ctx, g.helper)
	if err != nil {
		return fault.GPU(fmt.Errorf("look at the GPU after its fault: %w", err))
	}
	devices, missing := g.held.Now(all)
	if len(missing) > 0 {
		return fault.GPU(fmt.Errorf("GPU not fit: %s: not there any more after a fault: restart the host", strings.Join(missing, ", ")))
	}
	if err := a.gate(devices, guard.Holds); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gpuSuspect = false
	return nil
}

// giveGPUs gives the devices to others and ends the helper. The process and all that it left are dead by now: who still
// holds memory there is named, and whoever comes next is kept from the device by the same finding.
func (a *agent) giveGPUs() {
	a.mu.Lock()
	g := a.gpus
	a.mu.Unlock()
	if g.held != nil && g.helper != nil {
		a.nameHolders(g)
	}
	if g.held != nil {
		if err := g.held.Release(); err != nil {
			a.log.Warn("give the GPUs away", "err", err)
		}
	}
	if g.helper != nil {
		if err := g.helper.Close(); err != nil {
			a.log.Warn("end muster-gpu", "err", err)
		}
	}
	for _, n := range g.injection.Nodes { // muster-gpu had them open as well
		if slices.Contains(sharedNodes, filepath.Base(n.HostPath)) {
			continue
		}
		for _, holder := range holders("/proc", n.HostPath) {
			a.log.Warn("device is held after the end", "device", n.HostPath, "process", holder)
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

// nameHolders says who holds memory on devices that should be free.
func (a *agent) nameHolders(g grantedGPUs) {
	ctx, cancel := context.WithTimeout(context.Background(), clearPatience)
	defer cancel()
	byDevice, err := g.helper.Processes(ctx)
	if err != nil {
		a.log.Warn("look who holds GPU memory", "err", err)
		return
	}
	for _, d := range g.held.Devices {
		for _, p := range d.Users(byDevice[d.UUID]) {
			a.log.Warn("GPU memory is held after the end", "device", d.ID(), "pid", p.PID, "mb", p.UsedMB)
		}
	}
}

// tell puts into a plan's question which devices there are and what the process is told of them.
func (g grantedGPUs) tell(request *plan.Request, inContainer bool) {
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

func (g grantedGPUs) nodes() []container.Node {
	var all []container.Node
	for _, n := range g.injection.Nodes {
		all = append(all, container.Node{Path: n.Path, Type: rune(n.Type[0]), Major: n.Major, Minor: n.Minor, Mode: uint32(n.Mode.Perm()), UID: n.UID, GID: n.GID})
	}
	return all
}

func (g grantedGPUs) mounts() []container.Mount {
	var all []container.Mount
	for _, m := range g.injection.Mounts {
		all = append(all, container.Mount{From: m.From, To: m.To, ReadOnly: m.ReadOnly, Options: m.Options})
	}
	return all
}

func (g grantedGPUs) hooks() []container.Hook {
	var all []container.Hook
	for _, h := range g.injection.Hooks {
		all = append(all, container.Hook{Stage: h.Stage, Path: h.Path, Args: h.Args, Env: h.Env, Timeout: h.Timeout})
	}
	return all
}

// watchGPUs hears of faults of the held devices until ctx ends, and holds processes to muster.gpu.memory. What happens
// then is found in the next exit (see judge).
func (a *agent) watchGPUs(ctx context.Context, p plan.Plan) {
	a.mu.Lock()
	g := a.gpus
	a.mu.Unlock()
	if g.helper == nil {
		return
	}
	events := g.helper.Watch(ctx)
	go func() {
		for e := range events {
			a.hearGPU(ctx, g, e)
		}
	}()
	if p.Limits.GPUMemoryMB == 0 {
		return
	}
	watchdog := gpu.Watchdog{Devices: g.held.Devices, LimitMB: p.Limits.GPUMemoryMB, Ours: func(pid int) bool { return a.currentGuard().Holds(pid) }}
	go func() {
		for ctx.Err() == nil {
			over, err := watchdog.Run(ctx, g.helper)
			if err != nil {
				return
			}
			a.blame(registry.ClassOOM, fmt.Sprintf("process %d holds %d MB of GPU memory, muster.gpu.memory is %d MB", over.PID, over.UsedMB, p.Limits.GPUMemoryMB), true)
			a.killForGPU(ctx)
		}
	}()
}

// hearGPU acts on what the driver says of a device of ours.
func (a *agent) hearGPU(ctx context.Context, g grantedGPUs, e gpu.Event) {
	if !g.held.Concerns(e) {
		return
	}
	a.log.Warn("GPU fault", "device", e.Device, "finding", e.Finding().String())
	switch e.Class() {
	case gpu.RestartApp:
		a.blame(registry.ClassGPU, e.Finding().String(), false) // the process has lost its context: it ends by itself, or its framework recovers
	case gpu.ResetGPU:
		a.suspectGPU()
		a.blame(registry.ClassGPU, e.Finding().String(), true)
		a.killForGPU(ctx)
	case gpu.Ignore, gpu.InUse:
	}
}

func (a *agent) suspectGPU() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gpuSuspect = true
}

// endOnFaulty ends a process that has just begun, when a device asked for a reset after the gate was passed: who was told of it
// found no process to end.
func (a *agent) endOnFaulty(guard *sandbox.Guard) {
	a.mu.Lock()
	suspect := a.gpuSuspect
	a.mu.Unlock()
	if suspect {
		a.endForGPU(guard)
	}
}

// endForGPU kills the process; false: there is none, or it cannot be.
func (a *agent) endForGPU(guard *sandbox.Guard) bool {
	err := guard.Signal(syscall.SIGKILL)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		a.log.Warn("end the process for its GPU", "err", err)
	}
	return err == nil
}

// killForGPU ends the process, and waits until that has happened or ctx ends. Where none runs there is nothing to do: what
// starts next passes the gate first, and what is starting is looked at when it has begun (see endOnFaulty).
func (a *agent) killForGPU(ctx context.Context) {
	a.mu.Lock()
	guard, over := a.guard, a.over
	a.mu.Unlock()
	if over == nil || !a.endForGPU(guard) {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}
