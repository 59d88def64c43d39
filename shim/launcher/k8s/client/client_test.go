package client

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/job/jobtest"
)

// A client that hangs is ended after its patience, with all that it has started, and is no answer: to a job that was sent, nobody
// knows.
func TestClientsThatHang(t *testing.T) {
	for _, tt := range []struct {
		verb     string
		patience time.Duration
		unknown  bool
	}{
		{"get", time.Second, false},
		{"create", 10 * time.Second, true}, // what is asked before it answers
	} {
		t.Run(tt.verb, func(t *testing.T) {
			dir := jobtest.Fake(t, "kubectl", fakeKubectl)
			jobtest.Write(t, dir, "hangs", tt.verb+"\n")
			k := &client{Objects: someObjects, Runner: job.Runner{Patience: tt.patience}}
			_, err := k.Start(t.Context())
			if !errors.Is(err, job.ErrUnreachable) || errors.Is(err, job.ErrUnknown) != tt.unknown || !strings.Contains(err.Error(), "no answer in "+tt.patience.String()) {
				t.Errorf("got %v; want no answer, unknown: %v", err, tt.unknown)
			}
			if _, end := k.Hints(); tt.unknown && end != "kubectl delete service/d1 job/d1-worker" {
				t.Errorf("got %q for what ends it", end)
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
		ours    = `{"kind":"Job","metadata":{"name":"d1-worker","labels":{"muster-agent/app":"d1"}},` + done + `}`
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
		{"ours, which has ended", list(service, ours), nil, []string{"delete", "create"}},
		{"our Service alone", service, nil, []string{"delete", "create"}},
		{"ours, which runs", list(service, strings.Replace(ours, "True", "False", 1)), job.ErrRuns, nil},
		{"somebody's Job", list(service, plain), job.ErrForeign, nil},
		{"another app's Job", list(service, other), job.ErrForeign, nil},
		{"somebody's Service", alone, job.ErrForeign, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := jobtest.Fake(t, "kubectl", fakeKubectl)
			jobtest.Write(t, dir, "there", tt.there)
			k := &client{Objects: someObjects}
			_, err := k.Start(t.Context())
			var verbs []string
			for line := range strings.Lines(jobtest.Asked(t, dir)) {
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
	dir := jobtest.Fake(t, "kubectl", fakeKubectl)
	jobtest.Write(t, dir, "refuses", "create\n")
	jobtest.Write(t, dir, "created", "service/d1\n")
	k := &client{Objects: someObjects, Namespace: "ml"}
	_, err := k.Start(t.Context())
	if !errors.Is(err, job.ErrRefused) || !strings.Contains(err.Error(), "create is forbidden") {
		t.Errorf("got %v, want kubectl's refusal", err)
	}
	if all := jobtest.Asked(t, dir); !strings.HasSuffix(all, "--namespace ml delete --ignore-not-found --wait=false service/d1") {
		t.Errorf("asked were\n%s\nwant that what was created goes", all)
	}
}

func TestKubernetesStates(t *testing.T) {
	for _, tt := range []struct {
		text string
		want job.State
	}{
		{`{"kind":"JobSet","metadata":{"name":"d1"},"status":{}}`, job.State{Word: "running"}},
		{`{"kind":"JobSet","status":{"conditions":[{"type":"Completed","status":"True"}]}}`, job.State{Word: "completed", Over: true, OK: true}},
		{
			`{"kind":"JobSet","metadata":{"name":"d1"},"status":{"conditions":[{"type":"Failed","status":"True","reason":"FailedJobs","message":"worker"}]}}`,
			job.State{Word: "failed", Over: true, Why: "d1: FailedJobs: worker"},
		},
		{
			`{"kind":"List","items":[{"kind":"Service"},{"kind":"Job","status":{"conditions":[{"type":"Complete","status":"True"}]}},{"kind":"Job"}]}`,
			job.State{Word: "completed, running"},
		},
		{`{"kind":"Job","status":{"conditions":[{"type":"Failed","status":"False"}]}}`, job.State{Word: "running"}},
		{`{"kind":"Service"}`, job.State{Word: "deleted", Over: true, Why: "the cluster does not know the job any more"}},
		{``, job.State{Word: "deleted", Over: true, Why: "the cluster does not know the job any more"}},
	} {
		jobs, err := readObjects(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := stateOf(jobs); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.text, got, tt.want)
		}
	}
}
