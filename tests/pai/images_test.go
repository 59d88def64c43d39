package pai_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// Three of the examples run in the image that scripts/images makes: one trains alone, one trains as a gang of a parameter
// server and two workers, and TensorBoard shows what the first has left. TestExamplesPlan plans the fourth: CNTK cannot be had.
func TestExamplesInTheirImage(t *testing.T) {
	need.Root(t)
	tensorflow(t)
	top := folder.Temp(t, "muster-images-")
	layout, store := filepath.Join(top, "layout"), folder.OfAll(t, filepath.Join(top, "store"))
	names := []string{"base", "tensorflow"}
	for _, name := range names { // one after the other: the second leaves the first where it is
		if said, err := exec.Command("../../scripts/images", layout, name).CombinedOutput(); err != nil {
			t.Fatalf("scripts/images: %v\n%s", err, said)
		}
	}
	index, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(index), `"org.opencontainers.image.ref.name": "`+name+`"`) {
			t.Errorf("no image %s in %s", name, index)
		}
	}
	if err := os.CopyFS(filepath.Join(store, "code"), os.DirFS(filepath.Join(examples, "code"))); err != nil {
		t.Fatal(err)
	}
	h := commandline.NewHost(t, muster)
	h.Env = append(h.Env, "XDG_CACHE_HOME="+filepath.Join(top, "cache")) // 1 GB, which nobody else wants
	begin := func(name string) *commandline.Command {
		return h.Start("run", filepath.Join(examples, name+".json"), "--app-id", name, "--work-dir", commandline.WorkFolder(t), "--json",
			"--engine", "container", "--set", "global:muster.image=oci:"+layout+":tensorflow", "--default-fs", "file:"+store)
	}
	alone := begin("tensorflow-example")
	alone.Await(t, 0, `^main-0 +\| worker 0 ended at step 200, loss 0\.00`)
	alone.Succeed()

	board := begin("tensorboard-example")
	url, _ := board.Await(t, 0, `^tensorboard-0 +\| TensorBoard .* at (http://\S+/)`)
	if got := body(t, url[0]+"data/plugin/scalars/tags"); !strings.Contains(got, `"loss"`) {
		t.Errorf("TensorBoard has the curves %s, want loss", got)
	}
	h.Do("stop", "tensorboard-example")
	board.Wait()

	folder.OfAll(t, filepath.Join(store, "output")) // made for the first job, whose processes had other ids of the host
	gang := begin("tensorflow-distributed-example")
	for _, worker := range []string{"0", "1"} {
		gang.Await(t, 0, `^worker-`+worker+` +\| worker `+worker+` ended at step 20\d, loss 0\.\d`)
	}
	gang.Succeed()
	leftOfTraining(t, store)
}

func body(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
