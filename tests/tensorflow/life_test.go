package tensorflow_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
)

// asked is what a process in an instance's container finds by Slider's REST, and what the agent has told the instance.
type asked struct {
	Cluster []any             `json:"cluster"` // ps, workers, job, task: by polling the exports, as the package's script can
	Told    []any             `json:"told"`    // the same by TF_CONFIG
	URL     map[string]string `json:"url"`     // TensorBoard's
}

// ask is run in an instance: the script's own reading of the exports, and one of the flat group.
const ask = `
import json, os, sys, urllib.request
root = os.environ["AGENT_WORK_ROOT"]
sys.path.insert(0, root + "/app/definition/package/scripts")
import cluster
base = os.environ["MUSTER_SLIDER_URL"]
told = cluster.from_tf_config(os.environ["TF_CONFIG"])
me = cluster.Me(os.environ["MUSTER_COMPONENT"], os.environ["LOCAL_ADDRESS"], "")
board = urllib.request.urlopen(base + "/ws/v1/slider/publisher/slider/tensorboard")
print(json.dumps({"cluster": cluster.from_exports(base, me, 30), "told": told, "url": json.load(board)["entries"]}))
`

// The catalog's package as it ships: its exports are seen from inside while it runs, worker 0 is killed and
// comes back from its checkpoint, and a stop lets it save what it has learnt.
func TestLife(t *testing.T) {
	python := tensorflowPython(t)
	h := commandline.NewHost(t, muster)
	checkpoints, work := folder.OfAll(t, t.TempDir()), commandline.WorkFolder(t)
	run := h.Start("run", "catalog:tensorflow", "--app-id", "life", "--work-dir", work, "--json",
		"--instances", "ps=2,worker=2,tensorboard=1", "--set", "global:muster.python="+python,
		"--set", "site.global.user.checkpoint.dir="+checkpoints, "--set", "muster.env.TRAIN_STEPS=1000000")
	training := training{t: t, app: "life", run: run}
	run.Await(t, 0, `^tensorboard-0 +\| muster: running`)
	training.says(0, "worker-1", `joined at step (\d+)`, 0)
	training.says(0, "worker-0", `step (\d+) loss .*`, 51) // a checkpoint is written each 50 steps

	board := commandline.Parse[commandline.Report](t, h.Do("status", "life", "--json")).Of(t, "tensorboard-0").Exports["tensorboard.url"]
	for instance, want := range map[string][]any{"ps-1": {"ps", 1.0}, "worker-0": {"worker", 0.0}} {
		seen := commandline.Parse[asked](t, h.Do("exec", "life/"+instance, "--", python, "-c", ask))
		if diff := cmp.Diff(seen.Told, seen.Cluster); diff != "" || !slices.Equal(seen.Cluster[2:], want) {
			t.Errorf("%s: as %v of %v; by TF_CONFIG and by the exports (-told +seen):\n%s", instance, want, seen.Cluster, diff)
		}
		if got := seen.URL["url"]; got != board || !strings.HasPrefix(got, "http://") {
			t.Errorf("%s: TensorBoard at %q, and status says %q", instance, got, board)
		}
	}

	killed := training.kill(h, "worker-0")
	at := training.says(killed, "worker-0", `restored step (\d+)`, 50)
	training.says(killed, "worker-0", `step (\d+) loss .*`, at+1)

	from := run.Mark()
	h.Do("stop", "life")
	end := training.says(from, "worker-0", `stopped at step (\d+)`, at+1)
	if code := run.Wait(); code != 0 {
		t.Errorf("got exit code %d of a run that was stopped, want 0", code)
	}
	saved, err := os.ReadFile(filepath.Join(checkpoints, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	// Worker 1 may go on for a step or two between the save and the word of it.
	newest := regexp.MustCompile(`^model_checkpoint_path: "` + regexp.QuoteMeta(checkpoints) + `/model\.ckpt-(\d+)"\n`).FindSubmatch(saved)
	if newest == nil {
		t.Fatalf("got newest checkpoint %s, want one in %s", saved, checkpoints)
	}
	if step, err := strconv.Atoi(string(newest[1])); err != nil || step <= at || step > end {
		t.Errorf("got newest checkpoint of step %s, want one after %d, where it went on, and up to %d, where it ended", newest[1], at, end)
	}
	if got := commandline.Parse[commandline.Report](t, run.Stdout.Bytes()); got.Outcome != "stopped" {
		t.Errorf("got outcome %q, want stopped", got.Outcome)
	}
	if left := processesNaming(t, work); len(left) > 0 {
		t.Errorf("processes of the run are left after its end: %s", strings.Join(left, "; "))
	}
}

// A worker's exit code is the app's, and its last words are told.
func TestWorkerThatFails(t *testing.T) {
	python3(t)
	folder := copied(t, catalogFolder)
	text := `import sys, time
if "--job_name=worker" in sys.argv:
    sys.exit(print("no such column: 65", file=sys.stderr) or 3)
while True:
    time.sleep(60)
`
	if err := os.WriteFile(filepath.Join(folder, "package", "files", "fails.py"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{"script", "builtin"} {
		t.Run(start, func(t *testing.T) {
			h := commandline.NewHost(t, muster)
			run := h.Start("run", folder, "--work-dir", commandline.WorkFolder(t), "--json", "--instances", "ps=1,worker=1,tensorboard=0",
				"--set", "site.global.user.scripts.entry=fails.py", "--set", "global:muster.start="+start,
				"--set", "global:muster.restart.budget=1", "--set", "global:muster.restart.backoff=0s")
			if code := run.Wait(); code != 3 {
				t.Errorf("got exit code %d, want 3\n%s", code, run.End())
			}
			run.Await(t, 0, `^worker-0 +\| muster: running \(attempt 2, generation 1\)`)
			run.Await(t, 0, `^ +no such column: 65$`) // below the verdict
			got := commandline.Parse[commandline.Report](t, run.Stdout.Bytes())
			if worker := got.Of(t, "worker-0"); got.Outcome != "failed" || worker.Exit == nil || *worker.Exit != 3 {
				t.Errorf("got outcome %q, and of worker-0 %+v, want failed and exit 3", got.Outcome, worker)
			}
		})
	}
}
