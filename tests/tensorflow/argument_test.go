package tensorflow_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// A program that is told by argument what to go on from gets that argument when there is a checkpoint, and not before.
func TestResumeByArgument(t *testing.T) {
	python := tensorflowPython(t)
	consul := consulserver.Start(t, consulserver.Options{})
	h := commandline.NewHost(t, muster)
	hold := filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := h.Start("run", copied(t, rolesFolder, "restore_argument.py"), "--app-id", "argument", "--registry", consul.URL(),
		"--work-dir", commandline.WorkFolder(t), "--json", "--instances", "chief=0,worker=1,ps=0,evaluator=0",
		"--set", "global:muster.command=exec "+python+" app/install/restore_argument.py",
		"--set", "global:muster.resume.args=--restore {{checkpoint}}", "--set", "global:muster.restart.backoff=0s",
		"--set", "muster.env.PROGRAM_HOLD="+hold)
	run.Await(t, 0, `^worker-0 +\| starting at step 0$`)
	_, saved := run.Await(t, 0, `^worker-0 +\| saved step 10$`)
	h.Do("signal", "argument/worker-0", "KILL")
	run.Await(t, saved, `^worker-0 +\| restored step 10 from \S+/model-10$`)
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	run.Await(t, saved, `^worker-0 +\| finished at step 50 value 25\.0$`)
	got := commandline.Parse[commandline.Report](t, run.Succeed())
	if got.Outcome != "succeeded" || len(got.Instances) != 1 {
		t.Errorf("got outcome %q of %d instances, want succeeded of one", got.Outcome, len(got.Instances))
	}
}
