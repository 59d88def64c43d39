package training_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// learned waits, from a position on, until n workers have finished after the last step: all with the same model, to the
// last bit, and one of them with an accuracy that guessing does not give. Only a training whose workers hear of one
// another ends so: each has its own share of the data.
func (j job) learned(t *testing.T, from, n, last int) {
	t.Helper()
	model := ""
	for worker := range n {
		groups, _ := j.Await(t, from, fmt.Sprintf(`^worker-%d +\| finished (?:at step|after round) %d with model ([0-9a-f]{16})$`, worker, last))
		if model == "" {
			model = groups[0]
		}
		if groups[0] != model {
			t.Errorf("worker-%d: got model %s, worker-0 has %s", worker, groups[0], model)
		}
	}
	groups, _ := j.Await(t, from, `^worker-\d+ +\| accuracy (\d\.\d+)$`)
	if accuracy, err := strconv.ParseFloat(groups[0], 64); err != nil || accuracy < 0.9 {
		t.Errorf("got accuracy %s, want 0.9 or more", groups[0])
	}
}

// reaches waits for a line of an instance whose number is at least this; it gives the number and the position behind it.
func (j job) reaches(t *testing.T, from int, instance, words string, least int) (number, next int) {
	t.Helper()
	_, next = j.AwaitWhere(t, from, `^`+instance+` +\| `+words+`$`, func(groups []string) bool {
		n, err := strconv.Atoi(groups[0])
		number = n
		return err == nil && n >= least
	})
	return number, next
}

// mortal is a job whose training goes on beyond its first checkpoint only when it has been killed: the kill comes neither too
// late on a slow machine nor on a fast one.
type mortal struct {
	job
	hold string
}

func launchMortal(t *testing.T, app, framework string) mortal {
	t.Helper()
	m, path := holding(t)
	m.job = launch(t, app, framework, "--set", "site.global.train.steps=250", "--set", "site.global.train.pace=0",
		"--set", "site.global.train.checkpoint.every=25", "--set", "global:muster.restart.backoff=0s",
		"--set", "muster.env.PYTHONPATH="+path, "--set", "muster.env.PROGRAM_HOLD="+m.hold)
	return m
}

// holding is a mortal job to be launched with PYTHONPATH and PROGRAM_HOLD.
func holding(t *testing.T) (m mortal, path string) {
	t.Helper()
	dir := t.TempDir()
	m = mortal{hold: filepath.Join(dir, "hold")}
	code, err := os.ReadFile("testdata/sitecustomize.py")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sitecustomize.py"), code, 0o644) //nolint:gosec // its reader is another user
	}
	if err == nil {
		err = os.WriteFile(m.hold, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, dir
}

// killed kills worker-1 in mid-training, once there is a checkpoint, and waits until all of the next generation run.
func (m mortal) killed(t *testing.T, n int) (checkpoint, next int) {
	t.Helper()
	checkpoint, next = m.reaches(t, 0, `worker-\d+`, `checkpoint step (\d+)`, 1)
	m.Do("signal", m.app+"/worker-1", "KILL")
	for worker := range n {
		m.Await(t, next, fmt.Sprintf(`^worker-%d +\| muster: running \(attempt \d+, generation 2\)$`, worker))
	}
	if err := os.Remove(m.hold); err != nil {
		t.Fatal(err)
	}
	return checkpoint, next
}

// A rank that is lost takes the others along; all begin again together, where the newest checkpoint is.
func TestPyTorchGoesOnFromTheCheckpointWhenARankIsKilled(t *testing.T) {
	j := launchMortal(t, "pytorch", "torch")
	checkpoint, from := j.killed(t, 3)
	for rank := range 3 {
		j.reaches(t, from, fmt.Sprintf("worker-%d", rank), fmt.Sprintf(`rank %d of 3: restored step (\d+)`, rank), checkpoint)
	}
	j.learned(t, from, 3, 250)
	j.succeeds(t, 2)
}

// Horovod's ranks meet anew, at a rendezvous of the same port, when one of them is lost.
func TestHorovodGoesOnWhenARankIsKilled(t *testing.T) {
	j := launchMortal(t, "horovod", "horovod")
	checkpoint, from := j.killed(t, 3)
	for rank := range 3 {
		j.reaches(t, from, fmt.Sprintf("worker-%d", rank), fmt.Sprintf(`rank %d of 3: restored step (\d+)`, rank), checkpoint)
	}
	j.learned(t, from, 3, 250)
	j.succeeds(t, 2)
}

// Two processes in each of two containers are four ranks, which average what they compute.
func TestHorovodWithTwoProcessesEach(t *testing.T) {
	j := launch(t, "horovod", "horovod", "--instances", "worker=2", "--set", "muster.nproc=2",
		"--set", "site.global.train.steps=75", "--set", "site.global.train.pace=0")
	for rank := range 4 {
		j.Await(t, 0, fmt.Sprintf(`^worker-%d +\| rank %d of 4: starting at step 0$`, rank/2, rank))
	}
	j.learned(t, 0, 2, 75)
	j.succeeds(t, 1)
}

// The workers are told by argument what to go on from; server and scheduler begin anew with them.
func TestMXNetResumesByArgumentWhenAWorkerIsKilled(t *testing.T) {
	j := launchMortal(t, "mxnet", "mxnet")
	checkpoint, from := j.killed(t, 2)
	for worker := range 2 {
		j.reaches(t, from, fmt.Sprintf("worker-%d", worker), `worker \d of 2: resuming at step (\d+)`, checkpoint)
	}
	j.learned(t, from, 2, 250)
	j.succeeds(t, 2)
}

func TestJAX(t *testing.T) {
	j := launch(t, "jax", "jax", "--set", "site.global.train.steps=150", "--set", "site.global.train.pace=0")
	for process := range 3 {
		j.Await(t, 0, fmt.Sprintf(`^worker-%d +\| process %d of 3: starting at step 0$`, process, process))
	}
	j.learned(t, 0, 3, 150)
	j.succeeds(t, 1)
}

func TestXGBoost(t *testing.T) {
	j := launch(t, "xgboost", "xgboost", "--set", "site.global.train.rounds=20", "--set", "site.global.train.pace=0")
	for worker := range 3 {
		j.Await(t, 0, fmt.Sprintf(`^worker-%d +\| worker %d is rank \d of 3: starting at round 0$`, worker, worker))
	}
	j.learned(t, 0, 3, 20)
	j.succeeds(t, 1)
}

func TestLightGBM(t *testing.T) {
	j := launch(t, "lightgbm", "lightgbm", "--set", "site.global.train.rounds=20", "--set", "site.global.train.pace=0")
	for worker := range 3 {
		j.Await(t, 0, fmt.Sprintf(`^worker-%d +\| worker %d of 3: starting at round 0$`, worker, worker))
	}
	j.learned(t, 0, 3, 20)
	j.succeeds(t, 1)
}

// One process, which goes on behind the newest weights that it has saved when it is killed.
func TestKeras(t *testing.T) {
	m, path := holding(t)
	m.job = launch(t, "keras", "tensorflow", "--set", "site.global.train.epochs=40", "--set", "global:muster.restart.backoff=0s",
		"--set", "muster.env.PYTHONPATH="+path, "--set", "muster.env.PROGRAM_HOLD="+m.hold)
	checkpoint, next := m.reaches(t, 0, "worker-0", `checkpoint epoch (\d+)`, 1)
	m.Do("signal", "keras/worker-0", "KILL")
	_, from := m.reaches(t, next, "worker-0", `resuming after epoch (\d+)`, checkpoint)
	if err := os.Remove(m.hold); err != nil {
		t.Fatal(err)
	}
	m.Await(t, from, `^worker-0 +\| finished after epoch 40 with model [0-9a-f]{16}$`)
	m.Await(t, from, `^worker-0 +\| accuracy (?:0\.9\d+|1\.0000)$`)
	m.succeeds(t, 1)
}
