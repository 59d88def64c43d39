package sandbox

import (
	"os"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// Cannot says which limits the process engine does not hold, by their names in the JSON of plan.Limits, and why. That
// of memory is not among them: the watchdog holds it, though it looks only once a second.
func (Process) Cannot() map[string]string {
	const noCgroup = "the process engine has no cgroup"
	return map[string]string{
		"swap_mb":  noCgroup,
		"high_mb":  cgroup.NoMemoryHigh,
		"vcores":   noCgroup,
		"cpu_hard": noCgroup + "; vcores are not a ceiling",
		"pids":     noCgroup + "; RLIMIT_NPROC counts a user's processes, not this instance's",
		"shm_mb":   "the process engine has no mount namespace; /dev/shm is the host's",
		"gpus":     "the process engine has no device list; only the environment names the devices",
	}
}

// Cannot says which limits a cgroup does not hold here, and why.
func (e Cgroup) Cannot() map[string]string {
	cannot := e.Tree.Cannot()
	cannot["shm_mb"] = "the cgroup engine has no mount namespace; /dev/shm is the host's"
	return cannot
}

// Cannot says which limits the container engine does not hold here, and why.
func (e Container) Cannot() map[string]string {
	cannot := e.Tree.Cannot()
	delete(cannot, "memory_mb") // it is watched where no cgroup holds it, as in the process engine
	if os.Geteuid() != 0 {
		// Its /dev has no other devices, and in a user namespace nobody can make a node.
		delete(cannot, "gpus")
	}
	return cannot
}
