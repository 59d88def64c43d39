package cgroup

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Envelope is the tightest limit of the own cgroup and of those above it that can be seen: MB of memory and whole
// cores, at least one; 0: none is known. A limit that the machine's size exceeds is none.
func (t Tree) Envelope() (memoryMB, vcores int) {
	var memory int64
	for dir := range t.upwards("memory") {
		limit := t.host.number(filepath.Join(dir, "memory.max"))
		if t.Mode != V2 {
			limit = t.host.number(filepath.Join(dir, "memory.limit_in_bytes"))
		}
		memory = tighter(memory, limit)
	}
	if total := t.host.memTotal(); total > 0 && memory >= total {
		memory = 0
	}
	var milli int64
	for dir := range t.upwards("cpu") {
		milli = tighter(milli, t.quota(dir))
	}
	if milli > 0 {
		vcores = max(1, int(milli/1000))
	}
	return int(memory >> 20), vcores
}

// upwards yields the folder of the own cgroup of a controller and those above it, as far as they are mounted.
func (t Tree) upwards(controller string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		c := t.Controllers[controller]
		for dir := c.Dir; dir != ""; dir = filepath.Dir(dir) {
			if !yield(dir) || dir == c.Mount || dir == "/" {
				return
			}
		}
	}
}

// tighter is the smaller of two limits, of which 0 or less is none.
func tighter(a, b int64) int64 {
	switch {
	case b <= 0:
		return a
	case a <= 0:
		return b
	}
	return min(a, b)
}

// quota of one cgroup in thousandths of a core; 0: none.
func (t Tree) quota(dir string) int64 {
	if t.Mode != V2 {
		return perMille(t.host.number(filepath.Join(dir, "cpu.cfs_quota_us")),
			t.host.number(filepath.Join(dir, "cpu.cfs_period_us")))
	}
	text, err := t.host.text(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0
	}
	quota, period, _ := strings.Cut(text, " ")
	q, err := strconv.ParseInt(quota, 10, 64) // else max
	if err != nil {
		return 0
	}
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil {
		return 0
	}
	return perMille(q, p)
}

func perMille(quota, period int64) int64 {
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota * 1000 / period
}

// memTotal of the machine in bytes; 0: not known.
func (h Host) memTotal() int64 {
	text, err := h.text("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kb int64
	if n, _ := fmt.Sscanf(text, "MemTotal: %d kB", &kb); n != 1 {
		return 0
	}
	return kb << 10
}
