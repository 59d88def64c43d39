package launcher

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// slurmDeeds: Slurm starts no task anew. The batch script reads the codes of its steps and puts the job into the queue again.
var slurmDeeds = map[Answer]deed{
	Done:      {"exit 0", "the job is COMPLETED when all tasks are"},
	Again:     {"scontrol requeue", "the batch script puts the job into the queue again, with the same run"},
	Elsewhere: {"scontrol requeue", "the same, as a new run"},
	Never:     {"exit", "the job is FAILED with the highest code of its steps"},
}

var slurmSurvival = plan.Survival{Keeps: []string{}} // what is requeued may start anywhere, with the job's id and its ranks

// slurm reads what srun and sbatch set. The task's number in the job is the rank of the instance;
// a requeued job keeps its id, so the run goes on.
func (f *finder) slurm() {
	a := &f.found.Allocation
	job := f.env["SLURM_JOB_ID"]
	f.found.JobID = job
	f.found.Origins["job_id"] = "SLURM_JOB_ID"
	f.found.AppID, f.found.RunID = "slurm-"+job, job
	f.found.Origins["app_id"] = "SLURM_JOB_ID"
	f.found.Origins["run"] = "SLURM_JOB_ID"
	f.slurmRank()
	f.take(&a.Host, "host", "SLURMD_NODENAME")
	f.take(&f.found.WorkDir, "work_dir", "SLURM_TMPDIR")
	f.number(&a.Envelope.VCores, "envelope.vcores", "SLURM_CPUS_PER_TASK")
	f.slurmMemory()

	id := []string{job}
	for _, name := range []string{"SLURM_STEP_ID", "SLURM_PROCID"} {
		if f.has(name) {
			id = append(id, f.env[name])
		}
	}
	a.ContainerID = strings.Join(id, ".")
	f.found.Origins["container_id"] = "SLURM_JOB_ID"
}

// slurmRank is SLURM_PROCID of a step. The batch script itself has a 0 there as well, and no step's number: it is no task,
// and whoever starts agents in it, by ssh or one beside the other, does not mean that all are rank 0.
func (f *finder) slurmRank() {
	f.found.Attempt = 1
	f.found.Origins["attempt"] = "SLURM_RESTART_COUNT"
	if n, err := strconv.Atoi(f.env["SLURM_RESTART_COUNT"]); err == nil && n > 0 { // absent before the first
		f.found.Attempt = n + 1
	}
	if !f.inStep() {
		f.note(batchNote)
		return
	}
	f.number(&f.found.Rank, "rank", "SLURM_PROCID")
	if f.found.Rank < 0 {
		return
	}
	// A node's slurmd starts a job again when nothing of it runs there any more. From a node that does not answer a job is
	// requeued to others without that: there its tasks may live.
	if node := f.env["SLURMD_NODENAME"]; node != "" {
		slot := []string{"slurm", f.env["SLURM_CLUSTER_NAME"], f.env["SLURM_JOB_ID"], f.env["SLURM_STEP_ID"], strconv.Itoa(f.found.Rank), node}
		f.found.Slot = strings.Join(slot, "/")
		f.found.Origins["slot"] = "SLURM_JOB_ID"
	}
}

const batchNote = "this is Slurm's batch script, no task of srun's: SLURM_PROCID is no rank here, a free index is claimed unless one is said"

// inStep tells whether srun started this. Names with and without the underscore are both Slurm's; a batch step that has a
// number has one of the highest, SLURM_BATCH_SCRIPT.
func (f *finder) inStep() bool {
	for _, name := range []string{"SLURM_STEP_ID", "SLURM_STEPID"} {
		if n, err := strconv.ParseUint(f.env[name], 10, 32); err == nil && n < firstSpecialStep {
			return true
		}
	}
	return false
}

// firstSpecialStep: numbers from here on are no srun's (SLURM_MAX_NORMAL_STEP_ID of slurm.h).
const firstSpecialStep = 0xfffffff0

// slurmMemory is the memory granted to one task in MB. Memory per node is taken only where the
// node runs one task: else it is shared with tasks that we do not see.
func (f *finder) slurmMemory() {
	to := &f.found.Allocation.Envelope.MemoryMB
	perCPU, tasks := 0, 1
	f.number(&perCPU, "envelope.memory_mb", "SLURM_MEM_PER_CPU")
	if perCPU > 0 {
		*to = perCPU * max(f.found.Allocation.Envelope.VCores, 1)
		return
	}
	f.number(&tasks, "envelope.tasks", "SLURM_NTASKS_PER_NODE")
	delete(f.found.Origins, "envelope.tasks")
	if tasks == 1 {
		f.number(to, "envelope.memory_mb", "SLURM_MEM_PER_NODE")
	}
}
