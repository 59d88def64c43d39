package slurm

import (
	"maps"
	"testing"

	"github.com/muster-agent/muster/shim/launcher"
)

// TestSlurmStep: only a task of srun's has a rank.
func TestSlurmStep(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		rank int
	}{
		{"srun", map[string]string{"SLURM_STEP_ID": "0"}, 2},
		{"another of its names", map[string]string{"SLURM_STEPID": "7"}, 2},
		{"the batch script", nil, -1},
		{"the batch script by number", map[string]string{"SLURM_STEP_ID": "4294967291"}, -1},
		{"the interactive step", map[string]string{"SLURM_STEP_ID": "4294967290"}, -1},
		{"no number", map[string]string{"SLURM_STEP_ID": "batch"}, -1},
	} {
		env := map[string]string{"SLURM_JOB_ID": "9", "SLURM_PROCID": "2", "SLURMD_NODENAME": "c3"}
		maps.Copy(env, tt.env)
		f := launcher.Detect([]launcher.Launcher{Agents}, env, launcher.Facts{})
		if f.Rank != tt.rank || (len(f.Notes) == 0) != (tt.rank >= 0) || (f.Slot == "") != (tt.rank < 0) {
			t.Errorf("%s: rank %d, notes %q, slot %q", tt.name, f.Rank, f.Notes, f.Slot)
		}
		env["SLURMD_NODENAME"] = "c4"
		if other := launcher.Detect([]launcher.Launcher{Agents}, env, launcher.Facts{}); f.Slot != "" && other.Slot == f.Slot {
			t.Errorf("%s: slot %q on two nodes, on the first of which the task may live", tt.name, f.Slot)
		}
	}
}
