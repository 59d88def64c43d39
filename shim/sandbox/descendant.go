package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// Holds tells whether a process, by its number in the agent's pid namespace, is one of the guard's descendants.
func (g *Guard) Holds(pid int) bool { return Host{}.descends(pid, g.PID()) }

// descends follows the parents of pid up to ancestor; a process that ends meanwhile descends from nobody.
func (h Host) descends(pid, ancestor int) bool {
	for pid > 1 {
		if pid == ancestor {
			return true
		}
		s, err := h.Stat(pid)
		if err != nil {
			return false
		}
		pid = s.PPID
	}
	return false
}

// outside is the number, in the agent's pid namespace, of the descendant of a guard that the guard itself knows as
// pid: in a container the two differ. 0: there is none.
func (h Host) outside(guard, pid int) int {
	all, err := h.Processes()
	if err != nil {
		return 0
	}
	for _, s := range withDescendants(all, func(s Stat) bool { return s.PID == guard }) {
		text, err := os.ReadFile(h.path("proc", strconv.Itoa(s.PID), "status"))
		if err == nil && innermost(string(text)) == pid {
			return s.PID
		}
	}
	return 0
}

// innermost reads the last number of NSpid in /proc/<pid>/status: the one in the process's own pid namespace.
func innermost(status string) int {
	for line := range strings.Lines(status) {
		numbers, ok := strings.CutPrefix(line, "NSpid:")
		if !ok {
			continue
		}
		fields := strings.Fields(numbers)
		if len(fields) == 0 {
			return 0
		}
		n, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}
