package proc

import (
	"os"
	"strconv"
	"strings"
)

// Descends follows the parents of pid up to ancestor; a process that ends meanwhile has no ancestor.
func (h Host) Descends(pid, ancestor int) bool {
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

// OuterPID is the number, in the caller's pid namespace, of the descendant of a guard that the guard itself knows as
// pid: in a container the two differ. 0: there is none. The process that was started is found first, for it is the
// guard's own child.
//
// All children of a guard are those of its first thread, which alone forks and adopts. No folder of the guard's is
// listed for them: the kernel keeps what was listed of a process until it is reaped, and dropping that took up
// to 30 ms of a processor (proc_invalidate_siblings_dcache, Linux 6.18).
func (h Host) OuterPID(guard, pid int) int {
	for todo := h.ChildrenOf(guard, strconv.Itoa(guard)); len(todo) > 0; todo = h.grandchildren(todo) {
		for _, child := range todo {
			text, err := h.text("proc/" + strconv.Itoa(child) + "/status")
			if err == nil && innermost(text) == pid { // else it has ended
				return child
			}
		}
	}
	return 0
}

// grandchildren are the children of all threads of these processes.
func (h Host) grandchildren(parents []int) []int {
	var all []int
	for _, pid := range parents {
		threads, err := os.ReadDir(h.path("proc", strconv.Itoa(pid), "task"))
		if err != nil {
			continue // it has ended
		}
		for _, thread := range threads {
			all = append(all, h.ChildrenOf(pid, thread.Name())...)
		}
	}
	return all
}

// ChildrenOf lists the children of one thread of a process.
func (h Host) ChildrenOf(pid int, thread string) []int {
	text, err := h.text("proc/" + strconv.Itoa(pid) + "/task/" + thread + "/children")
	if err != nil {
		return nil
	}
	var all []int
	for number := range strings.FieldsSeq(text) {
		if n, err := strconv.Atoi(number); err == nil {
			all = append(all, n)
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
