package gpu

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// overMemory is the first process, by pid, that holds more than limitMB of GPU memory, all devices together. ours tells
// which processes count; nil: all. Memory that the driver does not tell counts as none.
func overMemory(processes []Process, ours func(pid int) bool, limitMB int) (Process, bool) {
	total := map[int]Process{}
	for _, p := range processes {
		if p.UsedMB <= 0 || ours != nil && !ours(p.PID) {
			continue
		}
		t := total[p.PID]
		total[p.PID] = Process{PID: p.PID, UsedMB: t.UsedMB + p.UsedMB, Kind: p.Kind}
	}
	var worst Process
	found := false
	for _, p := range total {
		if limitMB > 0 && p.UsedMB > limitMB && (!found || p.PID < worst.PID) {
			worst, found = p, true
		}
	}
	return worst, found
}

// Watchdog holds processes to a limit of GPU memory (`muster.gpu.memory`). The driver has no such limit of its own,
// so what is over it for less than Every may go unseen.
type Watchdog struct {
	Devices []Device
	LimitMB int
	Ours    func(pid int) bool
	Every   time.Duration // 0: 1 s
}

// processSource is what the Watchdog asks; *Helper is one.
type processSource interface {
	Processes(ctx context.Context) (map[string][]Process, error)
}

// Run returns the first process over the limit, or the context's error. It looks after each Every, never at once: a
// process that was over it a moment ago may be ending. A source that does not answer is asked again: the limit is
// watched, not guaranteed.
func (w Watchdog) Run(ctx context.Context, source processSource) (Process, error) {
	every := w.Every
	if every == 0 {
		every = time.Second
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return Process{}, context.Cause(ctx)
		case <-ticker.C:
		}
		byDevice, err := source.Processes(ctx)
		if err == nil {
			if p, over := overMemory(w.on(byDevice), w.Ours, w.LimitMB); over {
				return p, nil
			}
		} else if errors.Is(err, errClosed) {
			return Process{}, err
		}
	}
}

// on are the processes on the devices, each once on each: one that computes and draws is in two of the driver's lists,
// and two MIG devices can be of one GPU instance.
func (w Watchdog) on(byDevice map[string][]Process) []Process {
	type holding struct {
		uuid          string
		instance, pid int
	}
	most := map[holding]Process{}
	for _, d := range w.Devices {
		for _, p := range d.Users(byDevice[d.UUID]) {
			at := holding{d.UUID, p.GPUInstance, p.PID}
			if had, ok := most[at]; !ok || p.UsedMB > had.UsedMB {
				most[at] = p
			}
		}
	}
	return slices.Collect(maps.Values(most))
}
