package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/job/jobtest"
)

// manager plays the ResourceManager: a script submits by writing ID NAME into the file apps.
type manager struct {
	dir    string
	mu     sync.Mutex
	killed []string
}

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch id, kill := strings.CutSuffix(r.URL.Path, "/state"); {
	case r.URL.Path == "/ws/v1/cluster/info":
		_, _ = w.Write([]byte("{}"))
	case kill:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.killed = append(m.killed, filepath.Base(id))
	case r.URL.Path == "/ws/v1/cluster/apps" && r.URL.Query().Get("user") == "ada" && r.URL.Query().Get("user.name") == "ada":
		type app struct{ ID, Name string }
		var answer struct{ Apps struct{ App []app } }
		text, _ := os.ReadFile(filepath.Join(m.dir, "apps")) // none while there is no such file
		for line := range strings.Lines(string(text)) {
			id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			answer.Apps.App = append(answer.Apps.App, app{id, name})
		}
		_ = json.NewEncoder(w).Encode(answer)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

const logged = "echo INFO impl.YarnClientImpl: Submitted application "

// innocent is a patience that is no test's matter: what a script begins with is done by then on a busy machine too.
const innocent = 10 * time.Second

// The ids come from the clients, else from the ResourceManager; what our clients told of a gang that is not whole is killed, and
// nothing else: somebody may submit under the same names at the same time.
func TestDistributedShell(t *testing.T) {
	var all sync.WaitGroup
	for _, tt := range []struct {
		name, script string
		patience     time.Duration
		noREST       bool
		id           string // as Start gives it
		kind         error
		killed       []string
		text         string
	}{
		{name: "both say it", script: logged + "application_1_1; " + logged + "application_1_2; sleep 600", id: "application_1_1,application_1_2"},
		{
			name: "a client that says nothing", script: logged + "application_1_1; echo application_1_2 d1-worker >>$FAKE/apps; sleep 600", patience: innocent,
			id: "application_1_1,application_1_2",
		},
		{name: "the clients follow and say nothing", script: "printf 'application_1_1 d1-ps\napplication_1_2 d1-worker\n' >>$FAKE/apps", id: "application_1_1,application_1_2"},
		{
			name: "a value with the client's name in it", script: ": distributedshell.Client; " + logged + "application_1_1; " + logged + "application_1_2; sleep 600",
			id: "application_1_1,application_1_2",
		},
		{
			name: "refused, while the same user's other submission is taken", script: "printf 'application_1_1 d1-ps\napplication_1_2 d1-worker\n' >>$FAKE/apps; echo queue full; exit 1",
			kind: job.ErrUnknown, text: "may be another user's: application_1_1, application_1_2",
		},
		{
			name: "two of a name, and nobody says whose", script: "printf 'application_1_1 d1-ps\napplication_1_2 d1-worker\napplication_1_3 d1-ps\napplication_1_4 d1-worker\n' >>$FAKE/apps",
			kind: job.ErrUnknown, text: "application_1_1, application_1_2, application_1_3, application_1_4",
		},
		{
			name: "ours is refused in part, while the other is taken", script: "printf 'application_1_1 d1-ps\napplication_1_2 d1-ps\n' >>$FAKE/apps; " + logged + "application_1_1; exit 1",
			kind: job.ErrRefused, killed: []string{"application_1_1"}, text: "exit status 1",
		},
		{name: "one is refused", script: logged + "application_1_1; echo queue ads is unknown; exit 1", kind: job.ErrRefused, killed: []string{"application_1_1"}, text: "exit status 1: INFO"},
		{name: "one does not come", script: logged + "application_1_1; sleep 600", patience: innocent, kind: job.ErrRefused, killed: []string{"application_1_1"}, text: "not all is submitted after 10s"},
		{name: "refused, and nobody to ask", script: "echo no ticket; exit 1", noREST: true, kind: job.ErrRefused, text: "exit status 1: no ticket"},
		{name: "silent, and nobody to ask", script: "sleep 600", patience: innocent, noREST: true, kind: job.ErrUnknown, text: "not all is submitted after 10s"},
		{name: "nothing at all", script: ":", kind: job.ErrRefused, text: "it tells of no application"},
	} {
		all.Go(func() {
			t.Run(tt.name, func(t *testing.T) { // all at once: some only wait
				dir := t.TempDir()
				jobtest.Write(t, dir, "apps", "application_0_9 d1-ps\napplication_0_8 other\n")
				m := &manager{dir: dir}
				server := httptest.NewServer(m)
				defer server.Close()
				y := &shellClient{
					restClient: &restClient{Addresses: []string{server.URL}, User: "ada"}, Applications: []string{"d1-ps", "d1-worker"},
					Script: "FAKE=" + dir + "; brought=$(mktemp -d); echo $brought >$FAKE/brought; touch $brought/muster; " + tt.script + "\n", Patience: tt.patience,
				}
				if tt.noREST {
					y.Addresses = nil
				}
				id, err := y.Start(t.Context())
				if id != tt.id || !errors.Is(err, tt.kind) || err != nil && !strings.Contains(err.Error(), tt.text) || !slices.Equal(m.killed, tt.killed) {
					t.Errorf("got %q, %v, killed %v; want %q, %v with %q, killed %v", id, err, m.killed, tt.id, tt.kind, tt.text, tt.killed)
				}
				brought, err := os.ReadFile(filepath.Join(dir, "brought"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(strings.TrimSpace(string(brought))); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("what the script brought is still there: %v", err)
				}
			})
		})
	}
	all.Wait()
}

// Whoever is called off kills what its clients have told of by then, and tells of what may be theirs.
func TestDistributedShellCalledOff(t *testing.T) {
	dir := t.TempDir()
	m := &manager{dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("/", m)
	mux.HandleFunc("/begun", func(http.ResponseWriter, *http.Request) { cancel() })
	server := httptest.NewServer(mux)
	defer server.Close()
	y := &shellClient{
		restClient: &restClient{Addresses: []string{server.URL}, User: "ada"}, Applications: []string{"d1-ps", "d1-worker"},
		Script: "printf 'application_1_1 d1-ps\napplication_1_2 d1-worker\n' >>" + dir + "/apps; " + logged + "application_1_1; exec 3<>/dev/tcp/" + strings.Replace(strings.TrimPrefix(server.URL, "http://"), ":", "/", 1) +
			"; printf 'GET /begun HTTP/1.0\\r\\n\\r\\n' >&3; sleep 600\n",
	}
	if id, err := y.Start(ctx); id != "" || !errors.Is(err, job.ErrUnknown) || !strings.Contains(err.Error(), "another user's: application_1_2") || !slices.Equal(m.killed, []string{"application_1_1"}) {
		t.Errorf("got %q, %v, killed %v, want the one that was told of killed", id, err, m.killed)
	}
}
