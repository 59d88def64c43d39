package tensorflow_test

import (
	"context"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
)

// exportGroup is one group of Slider's publisher.
type exportGroup struct {
	Entries map[string][]struct {
		Value string `json:"value"`
	} `json:"entries"`
}

func (g exportGroup) values(name string) []string {
	var values []string
	for _, e := range g.Entries[name] {
		values = append(values, e.Value)
	}
	return values
}

// Slider's own command line, as its documents of the TensorFlow package have it: the app package as an archive, a
// template and the resources; real TensorFlow. The exports are seen at the REST address while it runs, and it ends by
// itself when all workers have.
func TestSliderCreate(t *testing.T) {
	python := tensorflowPython(t)
	h := commandline.NewHost(t, muster)
	h.Env = append(h.Env, "XDG_STATE_HOME="+filepath.Join(filepath.Dir(commandline.WorkFolder(t)), "state"))
	hold := filepath.Join(t.TempDir(), "hold") // while it is there, the training does not end
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pack := copied(t, seedFolder, "between_graph.py")
	if err := os.CopyFS(filepath.Join(pack, "package", "scripts"), os.DirFS(catalogFolder+"/package/scripts")); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "tensorflow.zip")
	h.Do("package", "build", pack, "-o", archive)

	t.Cleanup(func() { h.Do("slider", "destroy", "tf1", "--force") })
	h.Do("slider", "create", "tf1", "--appdef", archive, "--template", seedFolder+"/appConfig-default.json", "--resources", seedFolder+"/resources.default.json",
		"--component", "ps", "1", "--component", "worker", "2", "--queue", "default", "--wait", "100",
		"--option", "site.global.user.scripts.entry", "between_graph.py", "--option", "site.global.user.data.dir", "",
		"--option", "site.global.user.checkpoint.dir", folder.OfAll(t, t.TempDir()), "--option", "muster.python", python,
		"--option", "muster.env.PROGRAM_STEPS", "100", "--option", "muster.env.PROGRAM_HOLD", hold)

	address := strings.TrimSpace(string(h.Do("exec", "tf1/worker-0", "--", "printenv", "MUSTER_SLIDER_URL")))
	seen := get[exportGroup](context.Background(), t, address+"/ws/v1/slider/publisher/exports/worker").values("host_port")
	status := commandline.Parse[commandline.Report](t, h.Do("status", "tf1", "--json"))
	var want []string
	for _, worker := range []string{"worker-0", "worker-1"} {
		want = append(want, status.Of(t, worker).Exports["worker.host_port"])
	}
	if !slices.Equal(slices.Sorted(slices.Values(seen)), slices.Sorted(slices.Values(want))) {
		t.Errorf("workers at %s: got %v, and status says %v", redacted(address), seen, want)
	}
	groups := get[struct{ Exports map[string]exportGroup }](context.Background(), t, address+"/ws/v1/slider/publisher/exports").Exports
	if got := slices.Sorted(maps.Keys(groups)); !slices.Contains(got, "ps") || !slices.Contains(got, "tensorboard") {
		t.Errorf("got the groups %v, want ps and tensorboard among them", got)
	}
	if diff := commandline.Parse[exportGroup](t, h.Do("slider", "registry", "--name", "tf1", "--getexp", "worker")).values("host_port"); !slices.Equal(diff, seen) {
		t.Errorf("slider registry --getexp says %v, the REST %v", diff, seen)
	}

	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	follow := h.Start("logs", "-f", "tf1/worker-0")
	if code := follow.Wait(); code != 0 {
		t.Errorf("logs -f: exit code %d", code)
	}
	got := commandline.Parse[struct {
		Verdict struct{ Outcome string }
	}](t, h.Do("status", "tf1", "--json")).Verdict.Outcome
	if got != "succeeded" {
		t.Errorf("got the outcome %q, want succeeded", got)
	}
}

// redacted is an address without its path, which is a secret of the run.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	return u.Host
}
