package launcher

import "strings"

// slurm reads what srun and sbatch set. The task's number in the job is the rank of the instance;
// a requeued job keeps its id, so the run goes on.
func (f *finder) slurm() {
	a := &f.found.Allocation
	job := f.env["SLURM_JOB_ID"]
	f.found.AppID, f.found.RunID = "slurm-"+job, job
	f.found.Origins["app_id"] = "SLURM_JOB_ID"
	f.found.Origins["run"] = "SLURM_JOB_ID"
	f.number(&f.found.Rank, "rank", "SLURM_PROCID")
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
