package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// memory is what the kernel counts for processes, in KiB; see smaps_rollup in proc_pid_smaps(5).
type memory struct{ anonymous, proportional, resident int }

func memoryOf(b *testing.B, pids []int) memory {
	b.Helper()
	var sum memory
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			into := map[string]*int{"Anonymous:": &sum.anonymous, "Pss:": &sum.proportional, "Rss:": &sum.resident}[words[0]]
			if into == nil {
				continue
			}
			kib, err := strconv.Atoi(words[1])
			if err != nil {
				b.Fatalf("process %d: %q", pid, line)
			}
			*into += kib
		}
	}
	return sum
}

func (m memory) report(b *testing.B, name string) {
	b.ReportMetric(float64(m.anonymous), name+":anonymous-KiB")
	b.ReportMetric(float64(m.proportional), name+":proportional-KiB")
	b.ReportMetric(float64(m.resident), name+":resident-KiB")
}

// processes are those that pick says yes to; it is told the words of their command lines.
func processes(b *testing.B, pick func(s proc.Stat, argv []string) bool) []int {
	b.Helper()
	all, err := proc.Host{}.Processes()
	if err != nil {
		b.Fatal(err)
	}
	var pids []int
	for _, s := range all {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		if pick(s, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")) {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// descendants are the processes below top that pick says yes to.
func descendants(b *testing.B, top int, pick func(s proc.Stat, argv []string) bool) []int {
	b.Helper()
	below := map[int]bool{top: true}
	for grown := true; grown; {
		grown = false
		for _, pid := range processes(b, func(s proc.Stat, _ []string) bool { return below[s.PPID] && !below[s.PID] }) {
			below[pid], grown = true, true
		}
	}
	return processes(b, func(s proc.Stat, argv []string) bool { return s.PID != top && below[s.PID] && pick(s, argv) })
}

// await looks again and again until see says yes.
func await(b *testing.B, what string, see func() bool) {
	b.Helper()
	awaitWithin(b, 2*patience, what, see)
}

func awaitWithin(b *testing.B, limit time.Duration, what string, see func() bool) {
	b.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !see() {
		select {
		case <-look.C:
		case <-late.C:
			b.Fatalf("not seen within %s: %s", limit, what)
		}
	}
}
