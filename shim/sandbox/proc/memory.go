package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory is the memory in bytes that the descendants of a guard hold. A page that several processes share counts in
// parts, so that the sum is what they hold together.
func (h Host) Memory(guard int) (int64, error) {
	tree, err := h.treeOf(guard)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, s := range tree {
		if s.PID == guard || !s.Alive() {
			continue
		}
		n, err := h.held(s.PID)
		if err != nil && !isNoProcess(err) {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// ticks is how many clock ticks (USER_HZ) a second of processor time has in /proc, on every architecture that Go knows.
const ticks = 100

// CPU is the processor time of a guard and its descendants, those included that have ended and were waited for.
func (h Host) CPU(guard int) (time.Duration, error) {
	tree, err := h.treeOf(guard)
	var total uint64
	for _, s := range tree {
		total += s.CPU
	}
	return time.Duration(total) * (time.Second / ticks), err
}

// treeOf is a guard and its descendants.
func (h Host) treeOf(guard int) ([]Stat, error) {
	all, err := h.Processes()
	if err != nil {
		return nil, err
	}
	return WithDescendants(all, func(s Stat) bool { return s.PID == guard }), nil
}

// held is the proportional memory of one process in bytes, and where that may not be read all that it maps and has in
// memory: too much rather than too little.
func (h Host) held(pid int) (int64, error) {
	dir := h.path("proc", strconv.Itoa(pid))
	rollup, err := os.ReadFile(dir + "/smaps_rollup")
	if err == nil {
		return parsePss(string(rollup))
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) { // absent before Linux 4.14
		return 0, err
	}
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0, err
	}
	return parseResident(string(statm), os.Getpagesize())
}

// parsePss reads /proc/<pid>/smaps_rollup: bytes. A process that is ending has no line of it.
func parsePss(text string) (int64, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, "Pss:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("smaps_rollup: %w", err)
		}
		return kb << 10, nil
	}
	return 0, nil
}

// parseResident reads /proc/<pid>/statm, whose second field counts pages.
func parseResident(text string, pageSize int) (int64, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm %q: no second field", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("statm: %w", err)
	}
	return pages * int64(pageSize), nil
}
