package submit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What muster has not written is neither replaced nor deleted, also where it has ended.
func TestForeignServicesStay(t *testing.T) {
	const ours = "A service of YARN, written by muster render yarn. | App d1, run 4: worker ×1."
	for _, tt := range []struct {
		name, kept string
		unreadable error
		foreign    bool
	}{
		{"ours", `{"name":"d1","description":"` + ours + `"}`, nil, false},
		{"somebody's", `{"name":"d1","description":"of ours"}`, nil, true},
		{"another app's", `{"name":"d1","description":"` + strings.Replace(ours, "d1", "D1", 1) + `"}`, nil, true},
		{"no definition", `oops`, nil, true},
		{"unreadable", ``, os.ErrPermission, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent []string
			mux := http.NewServeMux()
			mux.HandleFunc("GET /ws/v1/cluster/info", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
			mux.HandleFunc("GET /app/v1/services/d1", func(w http.ResponseWriter, _ *http.Request) {
				state := "STOPPED"
				if slices.Contains(sent, http.MethodPost) {
					state = "ACCEPTED"
				}
				_ = json.NewEncoder(w).Encode(service{Name: "d1", ID: "application_1_2", State: state})
			})
			mux.HandleFunc("/app/v1/services/", func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Method) })
			mux.HandleFunc("/app/v1/services", func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Method) })
			server := httptest.NewServer(mux)
			defer server.Close()
			y := &YARNService{
				ResourceManager: &ResourceManager{Addresses: []string{server.URL}}, Definition: `{"name":"d1","description":"` + ours + `"}`,
				Kept: func(_ context.Context, name string) ([]byte, error) {
					if name != "d1" {
						t.Errorf("asked for %s", name)
					}
					return []byte(tt.kept), tt.unreadable
				},
			}
			_, err := y.Start(t.Context())
			want := []string{http.MethodDelete, http.MethodPost}
			if tt.foreign {
				want = nil
			}
			if errors.Is(err, ErrForeign) != tt.foreign || (err != nil) != tt.foreign || !slices.Equal(sent, want) {
				t.Errorf("got %v after %v; want foreign: %v after %v", err, sent, tt.foreign, want)
			}
		})
	}
}

func TestForeignJobsStay(t *testing.T) {
	for _, tt := range []struct {
		name, there string
		kind        error
	}{
		{"ours", `{"ID":"d1","Status":"dead","Meta":{"muster_app":"d1","muster_run":"4"}}`, nil},
		{"ours, which runs", `{"ID":"d1","Status":"running","Meta":{"muster_app":"d1"}}`, ErrRuns},
		{"a service of somebody's", `{"ID":"d1","Type":"service","Status":"dead"}`, ErrForeign},
		{"one that runs", `{"ID":"d1","Type":"service","Status":"running"}`, ErrForeign},
	} {
		t.Run(tt.name, func(t *testing.T) {
			posted := false
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/job/d1", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.there) })
			mux.HandleFunc("POST /v1/jobs", func(http.ResponseWriter, *http.Request) { posted = true })
			server := httptest.NewServer(mux)
			defer server.Close()
			n := &Nomad{Address: server.URL, Job: `{"Job":{"ID":"d1","Meta":{"muster_app":"d1","muster_run":"5"}}}`}
			_, err := n.Start(t.Context())
			if !errors.Is(err, tt.kind) || posted != (tt.kind == nil) {
				t.Errorf("got %v, sent: %v; want %v", err, posted, tt.kind)
			}
		})
	}
}

const someObjects = `---
kind: Service
metadata: {name: d1, labels: {muster-agent/app: d1}}
---
kind: Job
metadata: {name: d1-worker, labels: {muster-agent/app: d1}}
`

// fakeKubectl shows the file there, refuses what the file refuses names, and hangs at what the file hangs names.
const fakeKubectl = `
for verb in get create delete; do
	case " $* " in *" $verb "*) break ;; esac
done
if grep -qs "^$verb$" "$FAKE/hangs"; then exec sleep 600; fi
[ "$verb" != get ] || cat "$FAKE/there" 2>/dev/null
[ "$verb" != create ] || cat "$FAKE/created" 2>/dev/null
if grep -qs "^$verb$" "$FAKE/refuses"; then
	echo "Error from server (Forbidden): $verb is forbidden" >&2
	exit 1
fi
`

func TestForeignObjectsStay(t *testing.T) {
	const (
		done    = `"status":{"conditions":[{"type":"Complete","status":"True"}]}`
		service = `{"kind":"Service","metadata":{"name":"d1","labels":{"muster-agent/app":"d1"}}}`
		job     = `{"kind":"Job","metadata":{"name":"d1-worker","labels":{"muster-agent/app":"d1"}},` + done + `}`
		plain   = `{"kind":"Job","metadata":{"name":"d1-worker"},` + done + `}`
		other   = `{"kind":"Job","metadata":{"name":"d1-worker","labels":{"muster-agent/app":"d.1"}},` + done + `}`
		alone   = `{"kind":"Service","metadata":{"name":"d1","labels":{"app":"web"}}}`
	)
	list := func(items ...string) string { return `{"kind":"List","items":[` + strings.Join(items, ",") + `]}` }
	for _, tt := range []struct {
		name, there string
		kind        error
		asks        []string // after the first get
	}{
		{"nothing", "", nil, []string{"create"}},
		{"ours, which has ended", list(service, job), nil, []string{"delete", "create"}},
		{"our Service alone", service, nil, []string{"delete", "create"}},
		{"ours, which runs", list(service, strings.Replace(job, "True", "False", 1)), ErrRuns, nil},
		{"somebody's Job", list(service, plain), ErrForeign, nil},
		{"another app's Job", list(service, other), ErrForeign, nil},
		{"somebody's Service", alone, ErrForeign, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := fake(t, "kubectl", fakeKubectl)
			write(t, dir, "there", tt.there)
			k := &Kubernetes{Objects: someObjects}
			_, err := k.Start(t.Context())
			var verbs []string
			for line := range strings.Lines(asked(t, dir)) {
				verbs = append(verbs, strings.Fields(line)[0])
			}
			if want := append([]string{"get"}, tt.asks...); !errors.Is(err, tt.kind) || !slices.Equal(verbs, want) {
				t.Errorf("got %v after %v, want %v after %v", err, verbs, tt.kind, want)
			}
		})
	}
}

// Of a job of which a part is refused nothing stays.
func TestRefusedObjects(t *testing.T) {
	dir := fake(t, "kubectl", fakeKubectl)
	write(t, dir, "refuses", "create\n")
	write(t, dir, "created", "service/d1\n")
	k := &Kubernetes{Objects: someObjects, Namespace: "ml"}
	_, err := k.Start(t.Context())
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "create is forbidden") {
		t.Errorf("got %v, want kubectl's refusal", err)
	}
	if all := asked(t, dir); !strings.HasSuffix(all, "--namespace ml delete --ignore-not-found --wait=false service/d1") {
		t.Errorf("asked were\n%s\nwant that what was created goes", all)
	}
}

func TestForeignUnitsStay(t *testing.T) {
	units := map[string]string{
		"muster-d1.target":   "# The instances of d1 on this host: leave those that it is to run.\n[Unit]\nWants=muster-d1@worker-0.service\n",
		"muster-d1@.service": "# One agent of systemd, written by muster render systemd; privileged: root, which makes containers.\n",
	}
	for _, tt := range []struct {
		name, there string
		foreign     bool
	}{
		{"ours", "# One agent of systemd, written by muster render systemd; unprivileged.\n", false},
		{"somebody's", "[Unit]\nDescription=mine\n", true},
		{"empty", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake(t, "systemctl", "")
			dir := t.TempDir()
			write(t, dir, "muster-d1@.service", tt.there)
			drop := filepath.Join(dir, "muster-d1@worker-7.service.d")
			if err := os.Mkdir(drop, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, drop, "limits.conf", "[Service]\nMemoryMax=1G\n") // an operator's
			s := &Systemd{Dir: dir, Units: units}
			_, err := s.Start(t.Context())
			if errors.Is(err, ErrForeign) != tt.foreign || (err != nil) != tt.foreign {
				t.Errorf("got %v, want foreign: %v", err, tt.foreign)
			}
			text, readErr := os.ReadFile(filepath.Join(dir, "muster-d1@.service"))
			if readErr != nil || (string(text) == tt.there) != tt.foreign {
				t.Errorf("there is %q (%v), want it replaced: %v", text, readErr, !tt.foreign)
			}
			if _, err := os.Stat(filepath.Join(drop, "limits.conf")); err != nil {
				t.Errorf("an operator's own limits: %v", err)
			}
		})
	}
}
