package slurm

import (
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
)

// actions: Slurm restarts no single task. The batch script reads the codes of its steps and puts the job into the queue
// again.
var actions = map[launcher.Answer]launcher.Action{
	launcher.Done: {By: "exit 0", Does: "the job is COMPLETED when all tasks are"},
	launcher.Again: {
		By:   "scontrol requeue",
		Does: "the batch script puts the job into the queue again, with the same run",
	},
	launcher.Elsewhere: {By: "scontrol requeue", Does: "the same, as a new run"},
	launcher.Never:     {By: "exit", Does: "the job is FAILED with the highest code of its steps"},
}

var survival = plan.Survival{Keeps: []string{}} // what is requeued may start anywhere, with the job's id and its ranks
