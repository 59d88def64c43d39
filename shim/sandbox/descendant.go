package sandbox

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
