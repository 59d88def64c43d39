package slurm

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/launcher"
)

// killWait is Slurm's usual KillWait: the seconds between its SIGTERM and its SIGKILL.
const killWait = 30

// Agents is Slurm as its agents meet it.
var Agents = launcher.Launcher{
	Name:       "slurm",
	KillWindow: killWait,
	Recognise:  launcher.By("SLURM_JOB_ID"),
	Read:       find, Actions: actions, Survival: survival,
	KeepsOutput: true,
}

// find reads what srun and sbatch set. The task's number in the job is the rank of the instance;
// a requeued job keeps its id, so the run goes on.
func find(f *launcher.Finder) {
	a := &f.Found.Allocation
	job := f.Env["SLURM_JOB_ID"]
	f.Found.JobID = job
	f.Found.Origins["job_id"] = "SLURM_JOB_ID"
	f.Found.AppID, f.Found.RunID = "slurm-"+job, job
	f.Found.Origins["app_id"] = "SLURM_JOB_ID"
	f.Found.Origins["run"] = "SLURM_JOB_ID"
	takeRank(f)
	f.Take(&a.Host, "host", "SLURMD_NODENAME")
	f.Take(&f.Found.WorkDir, "work_dir", "SLURM_TMPDIR")
	f.Number(&a.Envelope.VCores, "envelope.vcores", "SLURM_CPUS_PER_TASK")
	takeMemory(f)

	id := []string{job}
	for _, name := range []string{"SLURM_STEP_ID", "SLURM_PROCID"} {
		if f.Has(name) {
			id = append(id, f.Env[name])
		}
	}
	a.ContainerID = strings.Join(id, ".")
	f.Found.Origins["container_id"] = "SLURM_JOB_ID"
}

// takeRank reads SLURM_PROCID of a step. The batch script itself has a 0 there as well, and no step's number: it is
// no task, and agents that are started in it, by ssh or one beside the other, are not all rank 0.
func takeRank(f *launcher.Finder) {
	f.Found.Attempt = 1
	f.Found.Origins["attempt"] = "SLURM_RESTART_COUNT"
	if n, err := strconv.Atoi(f.Env["SLURM_RESTART_COUNT"]); err == nil && n > 0 { // absent before the first
		f.Found.Attempt = n + 1
	}
	if !inStep(f) {
		f.Note(batchNote)
		return
	}
	f.Number(&f.Found.Rank, "rank", "SLURM_PROCID")
	if f.Found.Rank < 0 {
		return
	}
	// A node's slurmd starts a job again when nothing of it runs there any more. From a node that does not answer a
	// job is requeued to others without that: there its tasks may live.
	if node := f.Env["SLURMD_NODENAME"]; node != "" {
		slot := []string{
			"slurm", f.Env["SLURM_CLUSTER_NAME"], f.Env["SLURM_JOB_ID"], f.Env["SLURM_STEP_ID"],
			strconv.Itoa(f.Found.Rank), node,
		}
		f.Found.Slot = strings.Join(slot, "/")
		f.Found.Origins["slot"] = "SLURM_JOB_ID"
	}
}

const batchNote = "this is Slurm's batch script, no task of srun's: SLURM_PROCID is no rank here, a free index is " +
	"claimed unless one is said"

// inStep tells whether srun started this. Names with and without the underscore are both Slurm's; a batch step that
// has a number has one of the highest, SLURM_BATCH_SCRIPT.
func inStep(f *launcher.Finder) bool {
	for _, name := range []string{"SLURM_STEP_ID", "SLURM_STEPID"} {
		if n, err := strconv.ParseUint(f.Env[name], 10, 32); err == nil && n < firstSpecialStep {
			return true
		}
	}
	return false
}

// firstSpecialStep: numbers from here on are no srun's (SLURM_MAX_NORMAL_STEP_ID of slurm.h).
const firstSpecialStep = 0xfffffff0

// takeMemory reads the memory granted to one task in MB. Memory per node is taken only where the
// node runs one task: else it is shared with tasks that we do not see.
func takeMemory(f *launcher.Finder) {
	to := &f.Found.Allocation.Envelope.MemoryMB
	perCPU, tasks := 0, 1
	f.Number(&perCPU, "envelope.memory_mb", "SLURM_MEM_PER_CPU")
	if perCPU > 0 {
		*to = perCPU * max(f.Found.Allocation.Envelope.VCores, 1)
		return
	}
	f.Number(&tasks, "envelope.tasks", "SLURM_NTASKS_PER_NODE")
	delete(f.Found.Origins, "envelope.tasks")
	if tasks == 1 {
		f.Number(to, "envelope.memory_mb", "SLURM_MEM_PER_NODE")
	}
}
