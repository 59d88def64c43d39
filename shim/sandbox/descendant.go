package sandbox

import (
	"os"
	"path/filepath"
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
// pid: in a container the two differ. 0: there is none. The process that was started is found first, for it is
// the guard's own child.
func (h Host) outside(guard, pid int) int {
	for todo := h.children(guard); len(todo) > 0; todo = todo[1:] {
		text, err := h.text("proc/" + strconv.Itoa(todo[0]) + "/status")
		if err != nil {
			continue // it has ended
		}
		if innermost(text) == pid {
			return todo[0]
		}
		todo = append(todo, h.children(todo[0])...)
	}
	return 0
}

// children of a process, of all its threads.
func (h Host) children(pid int) []int {
	files, err := filepath.Glob(h.path("proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil {
		return nil // only of a pattern that is none
	}
	var all []int
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for number := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(number); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
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
