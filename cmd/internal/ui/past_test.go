package ui

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// keepSamples leaves a run's samples in a history store, of one of its two instances.
func keepSamples(t *testing.T, app, run string) (url string) {
	t.Helper()
	url = "file://" + t.TempDir()
	store := history.New(url, schemes.Local())
	defer store.Close()
	w, err := store.Writer(t.Context(), app, run, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"worker-0", "worker-1"} {
		st := history.State{State: status.State{App: app, Run: run}}
		st.Instance.Instance = name
		one := history.Instance{State: st, LogDir: t.TempDir(), Hide: func(text string) string { return text }}
		if i == 0 {
			one.Samples = samples.Table{Version: 1, Instance: name, At: []int64{5, 10, 15}}
		}
		if err := w.Put(t.Context(), registry.Instance{Component: "worker", Index: i}, one); err != nil {
			t.Fatal(err)
		}
	}
	return url
}

// sampled is what a server that reads the history at url answers of d1's samples.
func sampled(t *testing.T, state status.Dir, url, query string) (code int, text string) {
	t.Helper()
	s := &Server{Lookup: func(string) (apps.Lookup, error) {
		past := apps.Past{Store: history.New(url, schemes.Local())}
		return apps.Lookup{State: state, Warn: io.Discard, Past: past}, nil
	}}
	r := httptest.NewRequest("GET", "/api/v1/apps/d1/samples"+query, nil)
	r.SetPathValue("app", "d1")
	answer := httptest.NewRecorder()
	s.samples(answer, r)
	return answer.Code, answer.Body.String()
}

// A run that only the history store has answers with the samples that its agents have left; so does one that is over and
// that this host still knows.
func TestSamplesOfThePast(t *testing.T) {
	known := status.Dir(t.TempDir())
	addApp(t, known, "d1")
	for what, state := range map[string]status.Dir{"known nowhere else": status.Dir(t.TempDir()), "known here": known} {
		url := keepSamples(t, "d1", "1")
		for query, want := range map[string]string{"": `"at":[5,10,15]`, "?since=5": `"at":[10,15]`, "?since=-6": `"at":[10,15]`} {
			code, text := sampled(t, state, url, query)
			if code != 200 || strings.Count(text, `"instance":`) != 1 || !strings.Contains(text, want) {
				t.Errorf("%s, %q: got %d %s", what, query, code, text)
			}
		}
	}
}

// What the history has of another run, and what it has of a run whose agents live here, is none of the app's samples now.
func TestSamplesOfThisRunAlone(t *testing.T) {
	state := status.Dir(t.TempDir())
	addApp(t, state, "d1")
	if code, text := sampled(t, state, keepSamples(t, "d1", "0"), ""); code != 200 || !strings.Contains(text, `"instances":[]`) {
		t.Errorf("another run: %d %s", code, text)
	}
	url := keepSamples(t, "d1", "1")
	addAgent(t, state, "d1", "worker-0", status.Source{Samples: func(int64) samples.Table {
		return samples.Table{Version: 1, Instance: "worker-0", At: []int64{99}}
	}})
	if code, text := sampled(t, state, url, ""); code != 200 || strings.Count(text, `"at":[`) != 1 || !strings.Contains(text, "[99]") {
		t.Errorf("an agent lives: %d %s", code, text)
	}
}
