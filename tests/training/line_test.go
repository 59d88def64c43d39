package training_test

import (
	"fmt"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
)

// A script of one's own, without a package and without a word of its framework: one line runs it on three workers, which
// find each other, and a killed one comes back with all from the checkpoint.
func TestLine(t *testing.T) {
	at := python(t, "torch")
	m, path := holding(t)
	h := commandline.NewHost(t, muster)
	m.job = job{Host: h, app: "line", Command: h.Start("run", "-n", "3", "--app-id", "line", "--work-dir", commandline.WorkFolder(t), "--json",
		"--env", "PYTHONPATH="+path, "--env", "PROGRAM_HOLD="+m.hold, "--dir", checkout+"/packages/catalog/pytorch/package/files",
		"--", at, "train.py", "--steps", "250", "--pace", "0", "--checkpoint-every", "25", "--seed", "1")}
	m.Await(t, 0, `^framework: pytorch, for train.py imports torch `)
	checkpoint, next := m.killed(t, 3)
	for rank := range 3 {
		m.reaches(t, next, fmt.Sprintf("worker-%d", rank), fmt.Sprintf(`rank %d of 3: restored step (\d+)`, rank), checkpoint)
	}
	m.learned(t, next, 3, 250)
	m.succeeds(t, 2)
}
