package publisher

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const base = "http://127.0.0.1:4000/0123456789abcdef0123456789abcdef"

// ask answers below root from a view; it is told what the handler would be.
func ask(v View, verb, path, body string) (answer, error) {
	r, names, rest, ok := find(strings.Split(path, "/"))
	if !ok {
		return answer{}, errors.New("no route")
	}
	return r.answer(question{
		view: v, base: base, verb: verb, body: body, now: at(60), names: names, rest: rest,
		stop: func(string) error { return nil },
	})
}

// asked has a path for each route, and for each kind of answer of it.
var asked = []struct{ verb, path, body, file string }{
	{"GET", "publisher", "", "sets.json"},
	{"GET", "publisher/exports", "", "exports.json"},
	{"GET", "publisher/exports/PS", "", "exports_ps.json"},
	{"GET", "publisher/exports/quicklinks", "", "exports_application.json"},
	{"GET", "publisher/exports/container_log_dirs", "", "exports_log_dirs.json"},
	{"GET", "publisher/exports/container_work_dirs", "", "exports_work_dirs.json"},
	{"GET", "publisher/slider", "", "set.json"},
	{"GET", "publisher/slider/tf-site", "", "config.json"},
	{"GET", "publisher/slider/tf-site.json", "", "config_entries.json"},
	{"GET", "publisher/slider/TF-Site.xml", "", "config.xml"},
	{"GET", "publisher/slider/tf-site.properties", "", "config.properties"},
	{"GET", "publisher/slider/tf-site/fs.defaultFS", "", "property.json"},
	{"GET", "publisher/slider/ps", "", "config_of_group.json"},
	{"GET", "publisher/slider/componentinstancedata", "", "config_of_instances.json"},
	{"GET", "application", "", "application.json"},
	{"GET", "application/live", "", "live.json"},
	{"GET", "application/live/resources", "", "live_resources.json"},
	{"GET", "application/live/containers", "", "live_containers.json"},
	{"GET", "application/live/containers/worker-1", "", "live_container.json"},
	{"GET", "application/live/components", "", "live_components.json"},
	{"GET", "application/live/components/worker", "", "live_component.json"},
	{"GET", "application/live/nodes", "", "live_nodes.json"},
	{"GET", "application/live/nodes/h3", "", "live_node.json"},
	{"GET", "application/live/statistics", "", "live_statistics.json"},
	{"GET", "application/live/liveness", "", "live_liveness.json"},
	{"GET", "application/model", "", "model.json"},
	{"GET", "application/model/desired", "", "model_desired.json"},
	{"GET", "application/model/resolved", "", "model_resolved.json"},
	{"GET", "application/model/desired/appconf", "", "model_desired_appconf.json"},
	{"GET", "application/model/resolved/appconf", "", "model_resolved_appconf.json"},
	{"GET", "application/model/desired/resources", "", "model_desired_resources.json"},
	{"GET", "application/model/resolved/resources", "", "model_resolved_resources.json"},
	{"GET", "application/action/ping", "", "ping.json"},
	{"POST", "application/action/ping", "hello", "ping_post.json"},
	{"POST", "application/action/stop", "", "stop.json"},
	{"GET", "application/action/stop", "", "stop_get.json"},
	{"GET", "registry", "", "registry.json"},
	{"GET", "registry/users/ada/services/org-apache-slider", "", "registry_class.json"},
	{"GET", "registry/users/ada/services/org-apache-slider/tf1", "", "registry_app.json"},
	{"GET", "registry/users/ada/services/org-apache-slider/tf1/components", "", "registry_components.json"},
	{"GET", "registry/users/ada/services/org-apache-slider/tf1/components/container-17-0001-01-ps-0", "", "registry_component.json"},
}

func TestAnswers(t *testing.T) {
	for _, tt := range asked {
		t.Run(tt.verb+" "+tt.path, func(t *testing.T) {
			a, err := ask(rich(), tt.verb, tt.path, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.file, a)
		})
	}
}

// golden compares an answer with its file; JSON in the file is indented, to be read.
func golden(t *testing.T, name string, a answer) {
	t.Helper()
	got := a.body
	if a.contentType == typeJSON {
		var b bytes.Buffer
		if err := json.Indent(&b, a.body, "", "  "); err != nil {
			t.Fatalf("%v in %s", err, a.body)
		}
		got = b.Bytes()
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (want -, got +), -update rewrites it:\n%s", file, diff)
	}
}

// Every route must have a golden file, or a new one goes without.
func TestEveryRouteIsAsked(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range asked {
		r, _, _, _ := find(strings.Split(tt.path, "/"))
		seen[r.path] = true
	}
	for _, r := range routes {
		if !seen[r.path] {
			t.Errorf("nobody asks for %s", r.path)
		}
	}
}
