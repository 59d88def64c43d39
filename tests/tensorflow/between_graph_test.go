package tensorflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// Between-graph replication on two parameter servers and three workers with TensorBoard beside them:
// a user's script in a copy of the catalog's package, on a real Consul. A worker and a parameter
// server are killed in mid-training.
func TestBetweenGraphReplication(t *testing.T) {
	python := tensorflowPython(t)
	consul := consulserver.Start(t, consulserver.Options{})
	h := commandline.NewHost(t, muster)
	hold := filepath.Join(t.TempDir(), "hold") // while it is there, the training does not end
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	work := commandline.WorkFolder(t)
	run := h.Start("run", copied(t, catalogFolder, "between_graph.py"), "--app-id", "scenario-1",
		"--registry", consul.URL(), "--work-dir", work, "--json",
		"--instances", "ps=2,worker=3,tensorboard=1",
		"--set", "site.global.user.scripts.entry=between_graph.py", "--set", "global:muster.python="+python,
		"--set", "muster.env.PROGRAM_STEPS=300", "--set", "muster.env.PROGRAM_HOLD="+hold)
	training := training{t: t, app: "scenario-1", run: run}

	training.says(0, "worker-0", `starting at step (0)`, 0)
	// A checkpoint is written each 50 steps, between two of worker 0's lines.
	training.says(0, "worker-0", `step (\d+) loss .*`, 110)
	run.Await(t, 0, `^tensorboard-0 +\| muster: running`)
	before := h.Status(consul.URL(), "scenario-1")

	killed := training.kill(h, "worker-1")
	at := training.says(killed, "worker-1", `joined at step (\d+)`, 50)
	training.says(killed, "worker-1", `step (\d+) loss .*`, at)

	known := 50
	if seen := h.Status(consul.URL(), "scenario-1").Of(t, "ps-0").CheckpointStep; seen != nil {
		known = max(known, int(*seen))
	}
	killed = training.kill(h, "ps-0")
	at = training.says(killed, "worker-0", `restored step (\d+)`, known)
	for _, worker := range []string{"worker-0", "worker-1", "worker-2"} {
		// Another worker may be back, and a few steps on, before worker 0 has looked where it is.
		training.says(killed, worker, `(?:restored|joined at) step (\d+)`, known)
		training.says(killed, worker, `step (\d+) loss .*`, at+1)
	}

	during := h.Status(consul.URL(), "scenario-1")
	scalars(t, run, during.Of(t, "tensorboard-0").Exports["tensorboard.url"])

	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	after := commandline.Parse[commandline.Report](t, run.Succeed())
	for _, worker := range []string{"worker-0", "worker-1", "worker-2"} {
		training.says(0, worker, `finished at step (\d+)`, 300)
	}
	checkEnd(t, before, after)
	if left := processesNaming(t, work); len(left) > 0 {
		t.Errorf("processes of the run are left after its end: %s", strings.Join(left, "; "))
	}
}

// checkEnd asserts what the result says of the whole run, and that addresses did not change in it.
func checkEnd(t *testing.T, before, after commandline.Report) {
	t.Helper()
	if after.Outcome != "succeeded" || after.Generations != 1 {
		t.Errorf("got outcome %q after %d generations, want succeeded after 1", after.Outcome, after.Generations)
	}
	restarts := map[string]int{"ps-0": 1, "worker-1": 1}
	for _, in := range after.Instances {
		if in.Restarts != restarts[in.Instance] {
			t.Errorf("%s: got %d restarts, want %d", in.Instance, in.Restarts, restarts[in.Instance])
		}
		if in.Phase != "done" {
			t.Errorf("%s: got phase %q at the end, want done", in.Instance, in.Phase)
		}
		checkSaved(t, in, 300)
		if was := before.Of(t, in.Instance).Exports; fmt.Sprint(was) != fmt.Sprint(in.Exports) {
			t.Errorf("%s: got exports %v at the end, before the kills %v", in.Instance, in.Exports, was)
		}
	}
	if len(after.Instances) != 6 {
		t.Errorf("got %d instances, want 6", len(after.Instances))
	}
}

// checkSaved asserts that those have seen the last checkpoint who end after it was written: worker 0,
// which writes it, and the parameter servers.
func checkSaved(t *testing.T, in commandline.Instance, least int64) {
	t.Helper()
	if in.Instance != "worker-0" && in.Role != "ps" {
		return
	}
	if in.CheckpointStep == nil || *in.CheckpointStep < least {
		t.Errorf("%s: got checkpoint step %v, want the last one, %d or more", in.Instance, in.CheckpointStep, least)
	}
}

// training is a run of between_graph.py or of the catalog's script, read by its lines.
type training struct {
	t   *testing.T
	app string
	run *commandline.Command
}

// says waits for an instance's line, from a position on, whose number is at least this; it gives the number.
func (tr training) says(from int, instance, words string, least int) int {
	tr.t.Helper()
	var step int
	tr.run.AwaitWhere(tr.t, from, `^`+instance+` +\| `+words+`$`, func(groups []string) bool {
		n, err := strconv.Atoi(groups[0])
		step = n
		return err == nil && n >= least
	})
	return step
}

// kill kills an instance's process and waits until the next one of it runs; it gives the position
// of the death among the lines.
func (tr training) kill(h commandline.Host, instance string) (died int) {
	tr.t.Helper()
	from := tr.run.Mark()
	h.Do("signal", tr.app+"/"+instance, "KILL")
	_, died = tr.run.Await(tr.t, from, `^`+instance+` +\| muster: backoff: `)
	tr.run.Await(tr.t, died, `^`+instance+` +\| muster: running \(attempt 2, generation 1\)$`)
	return died
}

// scalars waits until TensorBoard, at the URL that it exports, serves the losses of the run.
func scalars(t *testing.T, run *commandline.Command, exported string) {
	t.Helper()
	run.Await(t, 0, `^tensorboard-0 +\| TensorBoard .* at http://`)
	ctx, cancel := context.WithTimeout(t.Context(), commandline.Watchdog)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		tags := get[map[string]map[string]any](ctx, t, exported+"/data/plugin/scalars/tags")
		for name, tag := range tags {
			if _, ok := tag["loss"]; !ok {
				continue
			}
			points := get[[][3]float64](ctx, t, exported+"/data/plugin/scalars/scalars?tag=loss&run="+url.QueryEscape(name))
			if len(points) > 0 { // wall time, step, value
				last := points[len(points)-1]
				t.Logf("TensorBoard at %s: %d losses of run %s, the last %.6f at step %.0f", exported, len(points), name, last[2], last[1])
				return
			}
		}
		select {
		case <-tick.C: // TensorBoard looks for new events each 5 s and tells nobody
		case <-ctx.Done():
			t.Fatalf("TensorBoard at %s: got tags %v, want loss among them", exported, tags)
		}
	}
}

func get[T any](ctx context.Context, t *testing.T, address string) (v T) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req) // past any proxy
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", address, resp.Status, text)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v in %s", address, err, text)
	}
	return v
}

// processesNaming are the command lines of this machine's processes that have a text in them.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), text) { // else it has just ended
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
