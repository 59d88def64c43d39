package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"
)

// Usage is what was counted in a cgroup, and in those that its processes made below it, since Begin; or, where there is
// no cgroup, what a watchdog saw.
type Usage struct {
	OOMKills int // processes killed for memory, by the kernel or the watchdog
	// Peak and Limit are bytes of memory, page cache included; 0: not known, none. Where the kernel cannot reset the
	// peak (v2 before Linux 6.12) it is the peak since the cgroup was made.
	Peak, Limit int64
	CPU         time.Duration // time on a processor
	// Throttled is how long, and Periods in how many periods of 100 ms, the hard CPU limit held processes back.
	Throttled time.Duration
	Periods   int
	// PidsRefused counts forks that the limit of processes refused.
	PidsRefused int
	By          string // who counted: cgroup v1, cgroup v2, watchdog
}

// counters as the kernel has them: since the cgroup was made.
type counters struct {
	oom, pids, periods uint64
	cpu, throttled     time.Duration
	peak, limit        int64
}

// unlimited is where v1 writes a number of pages that no machine has, and v2 max.
const unlimited = 1 << 60

// Begin notes the counters: Usage counts from here. It resets the peak where the kernel can.
func (g *Group) Begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.restartPeak()
	// One that cannot be read now cannot be read later, and then Usage says so.
	g.start, _ = g.read()
}

// restartPeak ignores an error: an old peak is still a peak.
func (g *Group) restartPeak() {
	if dir, ok := g.dirs["memory"]; ok {
		_ = dir.write("memory.max_usage_in_bytes", "0")
		return
	}
	if g.peak == nil {
		dir, ok := g.dirs[""]
		if !ok {
			return
		}
		f, err := dir.file("memory.peak", unix.O_RDWR)
		if err != nil { // before Linux 6.12 it is read only
			return
		}
		g.peak = f
	}
	_, _ = g.peak.WriteString("reset")
}

// Usage is what was counted since Begin.
func (g *Group) Usage() (Usage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, err := g.read()
	if err != nil {
		return Usage{}, fmt.Errorf("read counters of cgroup %s: %w", g.below, err)
	}
	u := Usage{
		OOMKills: int(now.oom - g.start.oom), Peak: now.peak, Limit: now.limit, CPU: now.cpu - g.start.cpu,
		Throttled: now.throttled - g.start.throttled, Periods: int(now.periods - g.start.periods),
		PidsRefused: int(now.pids - g.start.pids), By: "cgroup v1",
	}
	if g.tree.Mode == V2 {
		u.By = "cgroup v2"
	}
	return u, nil
}

// Load is what the processes in a cgroup hold and have used at one moment; -1: it does not count that.
type Load struct {
	Memory int64         // bytes, page cache included, as the limit counts them
	CPU    time.Duration // since the cgroup was made
}

// Uncounted is the Load of what counts nothing.
var Uncounted = Load{Memory: -1, CPU: -1}

// Load reads it.
func (g *Group) Load() (Load, error) {
	l := Uncounted
	if g.tree.Mode == V2 {
		dir := g.dirs[""]
		memory, err := dir.number("memory.current")
		text, unread := dir.read("cpu.stat")
		if errors.Is(unread, os.ErrNotExist) {
			return Load{Memory: memory, CPU: -1}, err
		}
		return Load{memory, time.Duration(keyed(text, "usage_usec")) * time.Microsecond}, errors.Join(err, unread)
	}
	var errs [2]error
	if dir, ok := g.dirs["memory"]; ok {
		l.Memory, errs[0] = dir.number("memory.usage_in_bytes")
	}
	if dir, ok := g.dirs["cpuacct"]; ok {
		var used int64
		used, errs[1] = dir.number("cpuacct.usage")
		l.CPU = time.Duration(used)
	}
	return l, errors.Join(errs[:]...)
}

// number reads a file with one number; -1: there is no such file.
func (f folder) number(name string) (int64, error) {
	text, err := f.read(name)
	if errors.Is(err, os.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func (g *Group) read() (counters, error) {
	if g.tree.Mode == V2 {
		return g.readUnified()
	}
	return g.readLegacy()
}

func (g *Group) readLegacy() (counters, error) {
	c, err := g.legacy()
	if err != nil {
		return counters{}, err
	}
	m, err := c.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		return counters{}, err
	}
	n := counters{
		cpu: time.Duration(m.GetCPU().GetUsage().GetTotal()), periods: m.GetCPU().GetThrottling().GetThrottledPeriods(),
		throttled: time.Duration(m.GetCPU().GetThrottling().GetThrottledTime()),
		peak:      int64(m.GetMemory().GetUsage().GetMax()), limit: finite(m.GetMemory().GetUsage().GetLimit()),
	}
	// On v1 each cgroup counts for itself.
	if dir, ok := g.dirs["memory"]; ok {
		if n.oom, err = dir.sum("memory.oom_control", "oom_kill"); err != nil {
			return counters{}, err
		}
	}
	if dir, ok := g.dirs["pids"]; ok {
		n.pids, err = dir.sum("pids.events", "max")
	}
	return n, err
}

func (g *Group) readUnified() (counters, error) {
	manager, err := g.manager()
	if err != nil {
		return counters{}, err
	}
	m, err := manager.StatFiltered(cgroup2.StatCPU | cgroup2.StatMemory | cgroup2.StatMemoryEvents)
	if err != nil {
		return counters{}, err
	}
	n := counters{
		cpu: time.Duration(m.GetCPU().GetUsageUsec()) * time.Microsecond, periods: m.GetCPU().GetNrThrottled(),
		throttled: time.Duration(m.GetCPU().GetThrottledUsec()) * time.Microsecond,
		peak:      finite(m.GetMemory().GetMaxUsage()), limit: finite(m.GetMemory().GetUsageLimit()),
		oom: m.GetMemoryEvents().GetOomKill(), // of the whole subtree
	}
	if g.peak != nil {
		if n.peak, err = rereadNumber(g.peak); err != nil {
			return counters{}, err
		}
	}
	n.pids, err = g.dirs[""].sum("pids.events.local", "max")
	if err == nil && !g.dirs[""].has("pids.events.local") { // before Linux 6.11
		n.pids, err = g.dirs[""].sum("pids.events", "max")
	}
	return n, err
}

func finite(n uint64) int64 {
	if n >= unlimited {
		return 0
	}
	return int64(n)
}

// limit reads a limit in bytes; 0: none, or no such file.
func (f folder) limit(name string) int64 {
	text, err := f.read(name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64) // else max
	if err != nil {
		return 0
	}
	return finite(n)
}

// sum adds up the value of key in a flat keyed file of f and of all cgroups below it. An absent file counts 0.
func (f folder) sum(name, key string) (uint64, error) {
	var total uint64
	err := f.walk(func(g folder) error {
		text, err := g.read(name)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		n, err := keyed(text, key), err
		total += n
		return err
	})
	return total, err
}

// keyed reads one value of a flat keyed file; 0 when it is not there.
func keyed(text, key string) uint64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == key {
			n, _ := strconv.ParseUint(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

// rereadNumber reads again through an open descriptor.
func rereadNumber(f *os.File) (int64, error) {
	buffer := make([]byte, 32)
	n, err := f.ReadAt(buffer, 0)
	if n == 0 && err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(buffer[:n])), 10, 64)
}
