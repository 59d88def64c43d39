package slider

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim/exit"
)

// onYarn is an app that runs, as the ResourceManager says.
func onYarn(t *testing.T) (h home, manager string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws/v1/cluster/info", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
	mux.HandleFunc("GET /ws/v1/cluster/apps/application_1_1", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"app": {"state": "RUNNING", "finalStatus": "UNDEFINED"}}`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	manager = strings.TrimPrefix(server.URL, "http://")
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	h, err := openHome()
	if err != nil {
		t.Fatal(err)
	}
	a := h.app(&call{}, "far")
	a.record = record{Version: 1, App: "far", Revision: 1, Definition: "definition/1/package/app"}
	a.record.Yarn = &yarnRecord{Manager: manager, Queue: "train", Store: "hdfs:///apps", Runs: 1, ID: "application_1_1", TokenFile: "/etc/token"}
	a.record.Run.Registry = "consul://127.0.0.1:1"
	definition := filepath.Join(a.kept(), a.record.Definition)
	if err := os.MkdirAll(definition, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"metainfo.json":  `{"schemaVersion": "2.1", "application": {"name": "hello", "components": [{"name": "worker"}]}}`,
		"appConfig.json": `{"schema": "http://example.org/specification/v2.0.0", "global": {"muster.command": "echo hello"}}`,
		"resources.json": `{"schema": "http://example.org/specification/v2.0.0", "components": {"worker": {"yarn.role.priority": 1, "yarn.component.instances": 1}}}`,
	} {
		if err := os.WriteFile(filepath.Join(definition, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.record.write(a.kept()); err != nil {
		t.Fatal(err)
	}
	return h, manager
}

// typed runs a line of Slider's client.
func typed(line ...string) (said string, err error) {
	verbs := Verbs(nil)
	i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name() == line[0] })
	var out bytes.Buffer
	_, err = verbs[i].Run(context.Background(), console.Streams{Out: &out, Err: &out}, line[1:])
	return out.String(), err
}

// TestUpdateRunning has an app that runs on YARN be found where it runs.
func TestUpdateRunning(t *testing.T) {
	h, manager := onYarn(t)
	for _, test := range []struct{ option, value, want string }{
		{"--queue", "other", "its queue is train, which cannot become other before muster slider stop far"},
		{"--manager", "127.0.0.1:1", "its ResourceManager is " + manager + ", which cannot become 127.0.0.1:1 "},
		{"--basepath", "/else", "its store is hdfs:///apps, which cannot become hdfs:///else "},
		{"--registry", "consul://127.0.0.1:2", "its registry is consul://127.0.0.1:1, which cannot become consul://127.0.0.1:2 "},
	} {
		_, err := typed("update", "far", test.option, test.value)
		if exit.CodeOf(err) != exit.Held || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %d and %s", test.option, err, exit.Held, test.want)
		}
	}
	said, err := typed("update", "far", "--queue", "train", "--option", "site.a", "b", "--token-file", "/etc/other")
	if err != nil || !strings.Contains(said, "what runs stays as it is") {
		t.Fatalf("got %s, %v", said, err)
	}
	a, err := h.opened(&call{}, "far")
	if err != nil {
		t.Fatal(err)
	}
	args, err := a.submitArgs()
	if i := slices.Index(args, "--token-file"); err != nil || i < 0 || args[i+1] != "/etc/other" {
		t.Errorf("got %q, %v, want --token-file /etc/other", args, err)
	}
}

// submitFails has this test's binary be a `muster submit` that fails.
const submitFails = "SLIDER_TEST_SUBMIT_FAILS"

func TestMain(m *testing.M) {
	if os.Getenv(submitFails) != "" {
		os.Exit(exit.Timeout)
	}
	os.Exit(m.Run())
}

// stopped is an app whose only application has ended, at a ResourceManager that answers nothing of services while ill.
func stopped(t *testing.T) (h home, ill *atomic.Bool, asked func() []string) {
	t.Helper()
	ill = new(atomic.Bool)
	var mu sync.Mutex
	var lines []string
	yarn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		lines = append(lines, r.Method+" "+r.URL.Path)
		mu.Unlock()
		switch {
		case ill.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/ws/v1/cluster/info":
			_, _ = w.Write([]byte(`{}`))
		case r.URL.Path == "/ws/v1/cluster/apps/application_1_1":
			_, _ = w.Write([]byte(`{"app": {"state": "FINISHED", "finalStatus": "SUCCEEDED"}}`))
		default: // its services are those that run
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(yarn.Close)
	r := embedded.New(embedded.Options{})
	t.Cleanup(r.Close)
	consul := httptest.NewServer(r.Handler())
	t.Cleanup(consul.Close)
	h, _ = onYarn(t)
	a, err := h.opened(&call{}, "far")
	if err != nil {
		t.Fatal(err)
	}
	a.record.Yarn.Manager = strings.TrimPrefix(yarn.URL, "http://")
	a.record.Yarn.Store = "file://" + t.TempDir()
	a.record.Run.Registry = "consul://" + strings.TrimPrefix(consul.URL, "http://")
	if err := a.record.write(a.kept()); err != nil {
		t.Fatal(err)
	}
	return h, ill, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// TestSubmitFails keeps the application before a submit that failed while the ResourceManager said nothing of it.
func TestSubmitFails(t *testing.T) {
	h, ill, asked := stopped(t)
	t.Setenv(submitFails, "1")
	a, err := h.opened(&call{Streams: console.Streams{Out: io.Discard, Err: io.Discard}}, "far")
	if err != nil {
		t.Fatal(err)
	}
	ill.Store(true)
	if err := a.submit(context.Background(), nil); exit.CodeOf(err) != exit.Timeout {
		t.Fatalf("submit: got %v, want %d", err, exit.Timeout)
	}
	if said, err := typed("status", "far"); exit.CodeOf(err) != exit.Registry {
		t.Errorf("status of a ResourceManager that is ill: got %s, %v", said, err)
	}
	ill.Store(false)
	said, err := typed("status", "far")
	for _, want := range []string{`"yarn.state": "FINISHED"`, `"yarn.application.id": "application_1_1"`} {
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("status: got %s, %v, want %s", said, err, want)
		}
	}
	if said, err := typed("destroy", "far", "--force"); err != nil {
		t.Fatalf("destroy: %s, %v", said, err)
	}
	if want := "DELETE /app/v1/services/far"; !slices.Contains(asked(), want) {
		t.Errorf("YARN was asked %q, want %s", asked(), want)
	}
}

// TestNoManager names the file that does not say where YARN is, and the option of Slider's that does.
func TestNoManager(t *testing.T) {
	h, manager := onYarn(t)
	a, err := h.opened(&call{}, "far")
	if err != nil {
		t.Fatal(err)
	}
	conf := t.TempDir()
	a.record.Yarn.Manager, a.record.Yarn.Conf = "", conf
	if err := a.record.write(a.kept()); err != nil {
		t.Fatal(err)
	}
	want := "far: " + conf + "/yarn-site.xml names no ResourceManager: mend it, or say --manager HOST:PORT"
	for _, verb := range []string{"status", "start", "stop"} {
		if _, err := typed(verb, "far"); exit.CodeOf(err) != exit.Usage || err.Error() != want {
			t.Errorf("%s: got %v, want %s", verb, err, want)
		}
	}
	if said, err := typed("status", "far", "--manager", manager); err != nil || !strings.Contains(said, `"RUNNING"`) {
		t.Errorf("got %s, %v", said, err)
	}
}

// An add-on's name is that of a folder of its own: "." would be the place of all of them.
func TestAddonNames(t *testing.T) {
	for _, name := range []string{".", "./", "..", "a/b", "a=b", ""} {
		r := record{Definition: "definition"}
		if at, err := r.fillAddon(t.TempDir(), name, t.TempDir()); err == nil || !strings.Contains(err.Error(), "want one that a folder may have") {
			t.Errorf("%q: got %q, %v", name, at, err)
		}
	}
}
