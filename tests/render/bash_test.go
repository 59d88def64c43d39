package render_test

import "testing"

// TestBash has bash read the scripts; what they do is tried in shim/render.
func TestBash(t *testing.T) {
	for _, job := range []string{"slurm.sbatch", "yarn.shell"} {
		for app, dir := range written(t, job) {
			if out, bad, err := runs(t, "bash", "-n", only(t, dir)); err != nil || out+bad != "" {
				t.Errorf("%s %s: %v\n%s%s", app, job, err, out, bad)
			}
		}
	}
}
