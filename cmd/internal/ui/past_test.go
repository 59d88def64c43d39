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

// A run that only the history store has answers with the samples that its agents have left.
func TestSamplesOfThePast(t *testing.T) {
	url := "file://" + t.TempDir()
	store := history.New(url, schemes.Local())
	defer store.Close()
	w, err := store.Writer(t.Context(), "d1", "r1", false)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"worker-0", "worker-1"} {
		st := history.State{State: status.State{App: "d1", Run: "r1"}}
		st.Instance.Instance = name
		one := history.Instance{State: st, LogDir: t.TempDir(), Hide: func(text string) string { return text }}
		if i == 0 {
			one.Samples = samples.Table{Version: 1, Instance: name, At: []int64{5, 10, 15}}
		}
		if err := w.Put(t.Context(), registry.Instance{Component: "worker", Index: i}, one); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Lookup: func(string) (apps.Lookup, error) {
		return apps.Lookup{
			State: status.Dir(t.TempDir()), Warn: io.Discard, Past: apps.Past{Store: history.New(url, schemes.Local())},
		}, nil
	}}
	for query, want := range map[string]string{"": `"at":[5,10,15]`, "?since=5": `"at":[10,15]`, "?since=-6": `"at":[10,15]`} {
		r := httptest.NewRequest("GET", "/api/v1/apps/d1/samples"+query, nil)
		r.SetPathValue("app", "d1")
		answer := httptest.NewRecorder()
		s.samples(answer, r)
		text := answer.Body.String()
		if answer.Code != 200 || strings.Count(text, `"instance":`) != 1 || !strings.Contains(text, want) {
			t.Errorf("%q: got %d %s", query, answer.Code, text)
		}
	}
}
