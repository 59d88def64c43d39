package submit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A launcher's no is an answer. Where none comes to a job that was sent, the job may be there.
func TestAnswersToAJob(t *testing.T) {
	for _, tt := range []struct {
		name    string
		post    http.HandlerFunc
		unknown bool
		refused bool
	}{
		{"refuses", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such datacenter", http.StatusBadRequest)
		}, false, true},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, false},
		{"takes it", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("POST /v1/jobs", tt.post)
			mux.HandleFunc("GET /v1/job/d1", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "job not found", http.StatusNotFound) })
			server := httptest.NewServer(mux)
			defer server.Close()
			n := &Nomad{Address: server.URL, Job: `{"Job":{"ID":"d1"}}`}
			_, err := n.Start(t.Context())
			if errors.Is(err, ErrUnknown) != tt.unknown || errors.Is(err, ErrRefused) != tt.refused || (err != nil) != (tt.unknown || tt.refused) {
				t.Errorf("got %v; want unknown: %v, refused: %v", err, tt.unknown, tt.refused)
			}
		})
	}
}
