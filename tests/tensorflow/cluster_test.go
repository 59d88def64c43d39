package tensorflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// One client runs the script; the parameter servers and the other worker run muster's server, on which TensorFlow itself
// says that it computed, and end with the job.
func TestInGraphReplication(t *testing.T) {
	python := tensorflowPython(t)
	consul := consulserver.Start(t, consulserver.Options{})
	h := commandline.NewHost(t, muster)
	run := h.Start("run", copied(t, catalogFolder, "in_graph.py"), "--app-id", "in-graph", "--registry", consul.URL(),
		"--work-dir", commandline.WorkFolder(t), "--json", "--instances", "ps=2,worker=2,tensorboard=0",
		"--set", "site.global.user.scripts.entry=in_graph.py", "--set", "global:muster.python="+python,
		"--set", "global:muster.tensorflow.mode=in-graph")
	for _, server := range []string{"ps 0", "ps 1", "worker 1"} {
		run.Await(t, 0, `^\w+-\d +\| serving `+server+`$`)
	}
	for task := range 2 {
		run.Await(t, 0, fmt.Sprintf(`^worker-0 +\| tower %d on /job:worker/replica:0/task:%d/device:CPU:0`, task, task))
	}
	run.Await(t, 0, `^worker-0 +\| variable on /job:ps/replica:0/task:0/device:CPU:0`)
	finished(t, run, `^worker-0 +\| finished at step 100 loss (.+)$`)
	checkSucceeded(t, run, 4)
}

// Two parameter servers, two workers and an evaluator, which follows the checkpoints of the others and ends with them.
func TestEstimatorWithEvaluator(t *testing.T) {
	python := tensorflowPython(t)
	consul := consulserver.Start(t, consulserver.Options{})
	h := commandline.NewHost(t, muster)
	hold := filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := h.Start("run", copied(t, rolesFolder, "estimator.py"), "--app-id", "estimator", "--registry", consul.URL(),
		"--work-dir", commandline.WorkFolder(t), "--json", "--instances", "chief=0,worker=2,ps=2,evaluator=1",
		"--set", "global:muster.command=exec "+python+" app/install/estimator.py",
		"--set", "muster.env.PROGRAM_STEPS=100", "--set", "muster.env.PROGRAM_HOLD="+hold)
	run.Await(t, 0, `^evaluator-0 +\| evaluator 0$`)
	finished(t, run, `^evaluator-0 +\| evaluated step \d{3,} loss (.+)$`)
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	for worker := range 2 {
		run.Await(t, 0, fmt.Sprintf(`^worker-%d +\| finished$`, worker))
	}
	checkSucceeded(t, run, 5)
}

// finished waits for a line whose loss is that of something learnt.
func finished(t *testing.T, run *commandline.Command, words string) {
	t.Helper()
	run.AwaitWhere(t, 0, words, func(groups []string) bool {
		loss, err := strconv.ParseFloat(groups[0], 64)
		return err == nil && loss < 1
	})
}

func checkSucceeded(t *testing.T, run *commandline.Command, instances int) {
	t.Helper()
	got := commandline.Parse[commandline.Report](t, run.Succeed())
	if got.Outcome != "succeeded" || got.Generations != 1 || len(got.Instances) != instances {
		t.Errorf("got outcome %q of %d instances after %d generations, want succeeded of %d after 1", got.Outcome, len(got.Instances), got.Generations, instances)
	}
}
