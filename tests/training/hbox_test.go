package training_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// submission is a job of HBox's client; its default filesystem is a folder.
type submission struct {
	job
	store string
}

// submit runs words of hbox-submit with inputs, each a path in the default filesystem. Words that end in a file of testdata/hbox
// name it alone.
func submit(t *testing.T, app string, inputs map[string]string, words ...string) submission {
	t.Helper()
	work := commandline.WorkFolder(t)
	s := submission{store: filepath.Join(work, "store")}
	folder.Lay(t, s.store, inputs)
	for path := range inputs {
		if err := os.Chmod(filepath.Join(s.store, path), 0o644); err != nil { //nolint:gosec // processes of any user read it
			t.Fatal(err)
		}
	}
	folder.OfAll(t, s.store) // where a process makes output
	consul := consulserver.Start(t, consulserver.Options{})
	h := commandline.NewHost(t, muster)
	args := []string{
		"hbox-submit", "--app-id", app, "--registry", consul.URL(), "--work-dir", work, "--host", "127.0.0.1", "--json",
	}
	s.job = job{Host: h, Command: h.Start(append(args, words...)...), app: app, consul: consul}
	return s
}

// leaves gives the text of an output.
func (s submission) leaves(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.store, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// LightLDA's programs exist as sources of 2015 for MPICH and ZeroMQ alone. Programs in their place take their arguments:
// servers listen at the endpoint that they are told, workers find all of them in the file, and the counts of the model
// on both servers are those of all documents.
func TestLightLDA(t *testing.T) {
	inputs := map[string]string{}
	for i := range 4 {
		inputs[fmt.Sprintf("in/part-%d", i)] = strings.Repeat("0 1 2 0 1 2\n3 4 5 3 4 5\n", i+1)
	}
	const tokens = 2 * 6 * (1 + 2 + 3 + 4)
	s := submit(t, "lda", inputs, "--app-type", "distlightlda", "--worker-num", "2", "--ps-num", "2",
		"--files", "testdata/hbox/lightlda.sh,testdata/hbox/lightlda,testdata/hbox/multiverso_server",
		"--input", "in#data", "--output", "out#output", "sh", "lightlda.sh")
	for worker, documents := range []int{2 * (1 + 3), 2 * (2 + 4)} {
		s.Await(t, 0, fmt.Sprintf(`^worker-%d +\| %d documents; %d tokens of all workers on 2 servers$`, worker, documents, tokens))
	}
	s.succeeds(t, 1)
	kept := 0
	for server := range 2 {
		groups, _ := s.Await(t, 0, fmt.Sprintf(`^ps-%d +\| server %d of 2 workers keeps 3 words, (\d+) tokens$`, server, server))
		var n int
		if _, err := fmt.Sscan(groups[0], &n); err != nil {
			t.Fatal(err)
		}
		kept += n
		if got := s.leaves(t, fmt.Sprintf("out/ps-%d/server_%d_table_0.model", server, server)); strings.Count(got, "\n") != 3 {
			t.Errorf("ps-%d left %q, want a line for each of 3 words", server, got)
		}
		if got := s.leaves(t, fmt.Sprintf("out/worker-%d/doc_topic.0", server)); got == "" {
			t.Errorf("worker-%d left no topics", server)
		}
	}
	if kept != tokens {
		t.Errorf("the servers keep %d tokens, want %d", kept, tokens)
	}
}

// XFlow has no release. A program in its place is started as ps-lite's nodes are, the scheduler beside worker 0: it numbers
// them, the servers keep the weights, and both workers learn from each other's rows.
func TestXFlow(t *testing.T) {
	inputs := map[string]string{}
	for i := range 4 {
		inputs[fmt.Sprintf("in/part-%d", i)] = strings.Repeat("1 0:0:1 1:2:1\n0 0:1:1 1:2:1\n1 0:0:1 1:3:1\n0 0:1:1 1:3:1\n", 5)
	}
	s := submit(t, "xflow", inputs, "--app-type", "xflow", "--worker-num", "2", "--ps-num", "2",
		"--files", "testdata/hbox/xflow", "--input", "in#data", "python3", "xflow", "data", "50")
	for i := range 2 {
		s.Await(t, 0, fmt.Sprintf(`^worker-%d +\| worker (?:9|11): 40 of 40 rows are right; heap profile \./W%d$`, i, i))
	}
	s.succeeds(t, 1)
	for i := range 2 {
		s.Await(t, 0, fmt.Sprintf(`^ps-%d +\| server (?:8|10): keeps 2 weights; heap profile \./S%d$`, i, i))
	}
}

// The real Horovod as HBox's HOROVOD with the settings that HBox has for it, over Gloo: the build of the tests has no MPI.
// Two processes in each of two workers are four ranks, and the four have one model.
func TestHorovodOfHBox(t *testing.T) {
	at := python(t, "horovod")
	s := submit(t, "hvd", nil, "--app-type", "horovod", "--worker-num", "2",
		"--conf", "muster.framework=horovod-gloo", "--conf", "muster.python="+at,
		"--conf", "hbox.horovod.process.num.per.worker=2", "--conf", "hbox.horovod.fusion.threshold=1048576",
		"--files", filepath.Join(checkout, "packages/catalog/horovod/package/files/train.py"), "--output", "out#model",
		"--", "sh", "-c", `echo "fusion $HOROVOD_FUSION_THRESHOLD, TF_INDEX $TF_INDEX"; export MUSTER_CHECKPOINT_DIR=model; exec "$MUSTER_PYTHON" train.py --steps 75`)
	for rank := range 4 {
		s.Await(t, 0, fmt.Sprintf(`^worker-%d +\| rank %d of 4: starting at step 0$`, rank/2, rank))
	}
	for worker := range 2 {
		s.Await(t, 0, fmt.Sprintf(`^worker-%d +\| fusion 1048576, TF_INDEX %d$`, worker, worker+1))
	}
	s.learned(t, 0, 2, 75)
	s.succeeds(t, 1)
	if s.leaves(t, "out/worker-0/ckpt-75.pt") == "" {
		t.Error("rank 0 left no model")
	}
}
