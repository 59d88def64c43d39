package ui

import (
	"fmt"
	"net/http"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
)

// past are the routes of runs that are over, which the history store has: each answers as that of the app does.
func (s *Server) past(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/apps/{app}/runs", s.runs)
	mux.HandleFunc("GET /api/v1/apps/{app}/runs/{run}", s.ofRun((*Server).app))
	mux.HandleFunc("GET /api/v1/apps/{app}/runs/{run}/logs/{instance}/{stream}", s.ofRun((*Server).logs))
	mux.HandleFunc("GET /api/v1/apps/{app}/runs/{run}/timeline", s.ofRun((*Server).timeline))
	mux.HandleFunc("GET /api/v1/apps/{app}/runs/{run}/samples", s.ofRun((*Server).samples))
}

// pastRuns are the runs of an app in the history store.
type pastRuns struct {
	Version int            `json:"version"`
	Runs    []apps.PastRun `json:"runs"`
}

func (s *Server) runs(w http.ResponseWriter, r *http.Request) {
	k, err := s.Lookup(r.PathValue("app"))
	out := pastRuns{Version: 1}
	if err == nil {
		out.Runs, err = k.Runs(r.Context(), r.PathValue("app"))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	s.answerValue(w, out)
}

// ofRun answers as a server does that knows the one run which the request names, and nothing else.
func (s *Server) ofRun(answer func(*Server, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		run := r.PathValue("run")
		answer(&Server{Lookup: func(app string) (apps.Lookup, error) {
			k, err := s.Lookup(app)
			if err == nil && k.Past.Store == nil {
				err = noStore{app, run}
			}
			k.Past.Alone, k.Past.Run = true, run
			return k, err
		}}, w, r)
	}
}

// noStore is a run that was asked for where no history store is known.
type noStore struct{ app, run string }

func (e noStore) Error() string {
	return fmt.Sprintf("run %q of %s: this server has no history store that could have it; muster ui --history URL "+
		"names one", e.run, e.app)
}

func (noStore) Unwrap() error { return registry.ErrNoApp }
