package publisher

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
)

const service = "registry/users/ada/services/org-apache-slider/tf1"

// TestTensorFlowPackage asks all that the scripts of Slider's TensorFlow package ask, and looks where they look.
func TestTensorFlowPackage(t *testing.T) {
	for _, tt := range []struct{ name, path, at, want string }{
		{"memory of a ps", "application/live/resources", "components/ps/yarn.memory", `"2048"`},
		{"memory of a chief worker", "application/live/resources", "components/chiefworker/yarn.memory", `"4096"`},
		{"memory that nobody gave", "application/live/resources", "components/tensorboard/yarn.memory", `"256"`},
		{"cores of a worker", "application/live/resources", "components/worker/yarn.vcores", `"1"`},
		{"cores of all", "application/live/resources", "components/tensorboard/yarn.vcores", `"4"`},
		{"how many ps to wait for", "application/live/resources", "components/ps/yarn.component.instances", `"2"`},
		{"how many workers", "application/live/resources", "components/worker/yarn.component.instances", `"3"`},
		{"the first ps is the first that came", "publisher/exports/ps", "entries/host_port/0/value", `"h2:2223"`},
		{"the second ps", "publisher/exports/ps", "entries/host_port/1/value", `"h1:2222"`},
		{"there is no third", "publisher/exports/ps", "entries/host_port/2", `nothing`},
		{"the chief worker", "publisher/exports/chiefworker", "entries/host_port/0/value", `"h1:2224"`},
		{"workers that came at once are in rank order", "publisher/exports/worker", "entries/host_port/0/value", `"h2:2225"`},
		{"the second worker", "publisher/exports/worker", "entries/host_port/1/value", `"h3:2226"`},
		{"one that is lost has disappeared", "publisher/exports/worker", "entries/host_port/2", `nothing`},
		{"where the master answers", service, "service/external/0/addresses/0/uri", `"` + base + `"`},
		{"by which name it is found", service, "service/external/0/api", `"classpath:org.apache.slider.client.rest"`},
		{"the components' records", service + "/components", "nodes/2", `"container-17-0001-01-chiefworker-0"`},
		{"whose record it is", service + "/components/container-17-0001-01-chiefworker-0", "service/description", `"chiefworker"`},
		{"one that trains has no status", service + "/components/container-17-0001-01-worker-0", "service/status", `nothing`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := ask(rich(), "GET", tt.path, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := look(t, a.body, tt.at); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.at, got, tt.want)
			}
		})
	}
}

// TestFinishedWorkers: the package's tensorboard stops the app when so many workers' records say finished.
func TestFinishedWorkers(t *testing.T) {
	v := rich()
	for i, m := range v.Members {
		if strings.Contains(m.Component, "worker") {
			v.Members[i].Phase, v.Members[i].Up = registry.PhaseEnded, false
		}
	}
	a, err := ask(v, "GET", service+"/components", "")
	if err != nil {
		t.Fatal(err)
	}
	var listed pathEntry
	if err := json.Unmarshal(a.body, &listed); err != nil {
		t.Fatal(err)
	}
	finished := map[string]bool{}
	for _, node := range listed.Nodes {
		a, err := ask(v, "GET", service+"/components/"+node, "")
		if err != nil {
			t.Fatal(err)
		}
		if look(t, a.body, "service/status") == `"finished"` {
			finished[node] = strings.Contains(look(t, a.body, "service/description"), "worker")
		}
	}
	want := map[string]bool{
		"container-17-0001-01-chiefworker-0": true, "container-17-0001-01-worker-0": true, "worker-1": true, "container-17-0001-01-worker-2": true,
	}
	if diff := cmp.Diff(want, finished); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if a, err = ask(v, "GET", "publisher/exports/worker", ""); err != nil || a.status != 204 {
		t.Errorf("got status %d (%v), want 204: what has completed exports nothing", a.status, err)
	}
}

// look gives what stands at a path of keys and numbers, as JSON.
func look(t *testing.T, text []byte, at string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for key := range strings.SplitSeq(at, "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			if n, err := strconv.Atoi(key); err == nil && n < len(v) {
				value = v[n]
			} else {
				value = nil
			}
		default:
			value = nil
		}
	}
	if value == nil {
		return "nothing"
	}
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
