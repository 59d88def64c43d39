package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/logs"
	"github.com/muster-agent/muster/cmd/internal/seeds"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/publisher"
)

// The routes below are those of the systems that users come from, at the paths that their programs know: HBox's and
// Slider's below the resource manager's /proxy/APP, and PAI's.

func (s *Server) seeds(mux *http.ServeMux) {
	const hbox = "GET /proxy/{app}/ws/"
	mux.HandleFunc(hbox+"app", s.seed(func(a seeds.App) (any, error) {
		if !a.Defined() {
			return nil, errNoDefinition
		}
		return a.HBox(), nil
	}))
	mux.HandleFunc(hbox+"containers", s.seed(func(a seeds.App) (any, error) { return a.HBoxContainers(), nil }))
	mux.HandleFunc(hbox+"containers/{container}", s.hboxContainer)
	mux.HandleFunc(hbox+"containers/{container}/{log}", s.hboxLog)
	mux.HandleFunc(hbox+"app/evaluator", s.seed(func(a seeds.App) (any, error) { return a.Evaluator(), nil }))
	mux.HandleFunc(hbox+"app/boardUrl", s.seed(func(a seeds.App) (any, error) { return a.BoardURL(), nil }))
	mux.HandleFunc(hbox+"app/savemodel", s.hboxSave)
	mux.HandleFunc(hbox+"app/signal/{signal}", s.hboxSignal)
	mux.HandleFunc("/proxy/{app}/ws/v1/slider/{path...}", s.slider)

	const job = " /api/v1/jobs/{app}"
	mux.HandleFunc("GET /api/v1/jobs", s.paiJobs)
	mux.HandleFunc("GET"+job, s.pai(func(a seeds.App) (any, bool) { return a.PAI(s.base), true }))
	mux.HandleFunc("GET"+job+"/config", s.pai(func(a seeds.App) (any, bool) {
		text, ok := a.PAIConfig()
		return json.RawMessage(a.Hide(string(text))), ok
	}))
	mux.HandleFunc("GET"+job+"/ssh", s.pai(seeds.App.PAISSH))
	mux.HandleFunc("PUT"+job+"/executionType", s.paiExecution)
	for _, route := range []string{"POST /api/v1/jobs", "PUT" + job, "DELETE" + job} {
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) {
			refusePAI(w, http.StatusNotImplemented, "NotOffered",
				"jobs are not submitted or removed here: muster run JOB.json or muster submit JOB.json starts one, "+
					"muster forget APP removes what is over")
		})
	}
}

var errNoDefinition = exit.With(exit.Usage, fmt.Errorf("its definition is kept no more: %w", registry.ErrNoApp))

// seedOf is an app as it is now.
func (s *Server) seedOf(r *http.Request) (seeds.App, apps.Lookup, error) {
	app := r.PathValue("app")
	k, err := s.Lookup(app)
	if err != nil {
		return seeds.App{}, k, err
	}
	k.Warn = io.Discard
	facts, err := k.App(r.Context(), app)
	if err != nil {
		return seeds.App{}, k, err
	}
	facts.AskPeers(r.Context())
	a := seeds.Of(facts)
	if keysFor(r, facts.Verdict()) {
		a.ShowKeys()
	}
	return a, k, nil
}

// seed answers a GET: a string as text, any other value as JSON.
func (s *Server) seed(answer func(seeds.App) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, _, err := s.seedOf(r)
		var value any
		if err == nil {
			value, err = answer(a)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		if text, ok := value.(string); ok {
			answerText(w, text)
			return
		}
		s.answerValue(w, value)
	}
}

func answerText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text) // fails when the asker is gone
}

func noContainer(id string) error {
	return exit.With(exit.Usage, fmt.Errorf("container %q: %w; /containers lists them", id, registry.ErrNoApp))
}

func (s *Server) hboxContainer(w http.ResponseWriter, r *http.Request) {
	s.seed(func(a seeds.App) (any, error) {
		row, ok := a.Instance(r.PathValue("container"))
		if !ok {
			return nil, noContainer(r.PathValue("container"))
		}
		return a.HBoxContainer(row), nil
	})(w, r)
}

// hboxTail is how many lines of a log HBox's clients get. HBox empties a buffer with each answer; this server keeps
// none for anybody.
const hboxTail = 1000

// hboxLog answers the end of a log; of what is no log, nothing, as HBox does.
func (s *Server) hboxLog(w http.ResponseWriter, r *http.Request) {
	a, k, err := s.seedOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	row, ok := a.Instance(r.PathValue("container"))
	if !ok {
		refuse(w, noContainer(r.PathValue("container")))
		return
	}
	stream := strings.ToLower(r.PathValue("log"))
	if stream != "stdout" && stream != "stderr" {
		answerText(w, "")
		return
	}
	in := registry.Instance{Component: row.Component, Index: row.Index}
	reader, end, err := logs.Anywhere(r.Context(), k, apps.Target{App: r.PathValue("app"), Instance: &in})
	if err != nil {
		refuse(w, err)
		return
	}
	defer end()
	w.Header().Set("Content-Type", "text/plain")
	out := flusher{w}
	reader.Tail = hboxTail
	reader.Streams = []logs.Stream{{File: stream + ".log", Out: out, Mark: "|"}}
	if err := reader.One(r.Context(), in.String()); err != nil && r.Context().Err() == nil {
		_, _ = out.Write([]byte("muster: " + err.Error() + "\n")) // the answer has begun
	}
}

// mayActBySeed refuses who may only look, and what a stranger's page has a browser send: the old programs' GETs act,
// and carry no Origin. A browser names the site whose page asks; a link that was clicked or typed elsewhere acts on
// nothing. A program on the user's own machine may show the session's cookie; elsewhere it shows a token.
func (s *Server) mayActBySeed(r *http.Request) error {
	c := callerOf(r.Context())
	if !c.Act {
		return exit.With(exit.Forbidden, fmt.Errorf("%s %w", cmp.Or(c.Name, "this user"), errNoRight))
	}
	site := r.Header.Get("Sec-Fetch-Site")
	program := site == "" && s.Link != nil && s.shown(r) != "" && r.Header.Get("Origin") == ""
	own := site == "same-origin" || program
	if c.browser && !own && !s.sameOrigin(r) {
		return exit.With(exit.Forbidden, errors.New("only this server's own page, or a program, may act"))
	}
	return nil
}

// hboxSignal sends a signal to one process, as HBox does; FAILED tells that it has gone to none.
func (s *Server) hboxSignal(w http.ResponseWriter, r *http.Request) {
	err := s.mayActBySeed(r)
	if err != nil {
		s.tellAct(r, err)
		refuse(w, err)
		return
	}
	a, k, err := s.seedOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	number, err := strconv.Atoi(r.PathValue("signal"))
	in, ok := a.FirstRunning()
	if err == nil && !ok {
		err = errors.New("no process runs")
	}
	if err == nil {
		k.Who = callerOf(r.Context()).Name
		body := []byte(`{"signal": "` + strconv.Itoa(number) + `"}`)
		err = signal(r.Context(), console.Streams{}, act{lookup: k, app: r.PathValue("app"), instance: in, body: body})
	}
	s.tellAct(r, err)
	if err != nil {
		answerText(w, "FAILED")
		return
	}
	answerText(w, "SUCCEED")
}

// hboxSave saves and waits for it.
func (s *Server) hboxSave(w http.ResponseWriter, r *http.Request) {
	to := seeds.HBoxOutputs{To: []string{}}
	a, k, err := s.seedOf(r)
	if err == nil {
		err = s.mayActBySeed(r)
	}
	if err == nil && a.Saves() {
		k.Who = callerOf(r.Context()).Name
		var out bytes.Buffer
		err = ask.Save(r.Context(), console.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard}, k,
			r.PathValue("app"), ask.SaveOptions{JSON: true, Wait: saveTimeout})
		if err == nil {
			var report struct{ To []string }
			err = json.Unmarshal(out.Bytes(), &report)
			to.To = append(to.To, report.To...)
		}
	}
	s.tellAct(r, err)
	if err != nil {
		refuse(w, err)
		return
	}
	s.answerValue(w, to)
}

// asked is a request as Slider's publisher takes it: it answers from the app that the request names.
type asked struct {
	s *Server
	r *http.Request
}

func (o asked) View(context.Context) (publisher.View, error) {
	a, _, err := o.s.seedOf(o.r)
	return a.Slider(), err
}

// Stop is asked by whatever path leads to it.
func (o asked) Stop(ctx context.Context, _ string) error {
	err := o.s.mayActBySeed(o.r)
	var k apps.Lookup
	if err == nil {
		k, err = o.s.Lookup(o.r.PathValue("app"))
	}
	if err == nil {
		k.Who = callerOf(o.r.Context()).Name
		err = ask.Stop(ctx, console.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, k,
			o.r.PathValue("app"), ask.StopOptions{NoWait: true})
	}
	o.s.tellAct(o.r, err)
	return err
}

func (s *Server) slider(w http.ResponseWriter, r *http.Request) {
	a, _, err := s.seedOf(r)
	if err == nil && !a.Defined() {
		err = errNoDefinition
	}
	if err == nil && strings.HasPrefix(r.PathValue("path"), "application/action/stop") {
		err = s.mayActBySeed(r)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	prefix := "/proxy/" + r.PathValue("app")
	publisher.Answer(hiding{w, a}, r, s.base+prefix, strings.TrimPrefix(r.URL.Path, prefix), asked{s, r})
}

// hiding takes secret values out of an answer, which is written as a whole.
type hiding struct {
	http.ResponseWriter
	app seeds.App
}

func (h hiding) Write(b []byte) (int, error) {
	if _, err := io.WriteString(h.ResponseWriter, h.app.Hide(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// paiFailure is the body of PAI's refusals.
type paiFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refusePAI(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(paiFailure{code, text}) // fails when the asker is gone
}

// refuseJob refuses in PAI's words.
func refuseJob(w http.ResponseWriter, app string, err error) {
	switch {
	case errors.Is(err, registry.ErrNoApp):
		refusePAI(w, http.StatusNotFound, "NoJobError", "Job "+app+" is not found.")
	case exit.CodeOf(err) == exit.Forbidden || errors.Is(err, registry.ErrForbidden):
		refusePAI(w, http.StatusForbidden, "ForbiddenUserError", err.Error())
	case exit.CodeOf(err) == exit.Usage:
		refusePAI(w, http.StatusBadRequest, "InvalidParametersError", err.Error())
	default:
		refusePAI(w, http.StatusInternalServerError, "UnknownError", err.Error())
	}
}

// pai answers a question about a job; one without an answer is not found.
func (s *Server) pai(answer func(seeds.App) (value any, ok bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		app := r.PathValue("app")
		a, _, err := s.seedOf(r)
		if err != nil {
			refuseJob(w, app, err)
			return
		}
		value, ok := answer(a)
		switch {
		case ok:
			s.answerValue(w, value)
		case strings.HasSuffix(r.URL.Path, "/ssh"):
			refusePAI(w, http.StatusNotFound, "NoJobSshInfoError", "SSH info of job "+app+" is not found.")
		default:
			refusePAI(w, http.StatusNotFound, "NoJobConfigError", "Config of job "+app+" is not found.")
		}
	}
}

func (s *Server) paiJobs(w http.ResponseWriter, r *http.Request) {
	jobs, err := s.looks.jobs.get(r.Context(), "", func(ctx context.Context) ([]seeds.App, error) {
		k, err := s.Lookup("")
		if err != nil {
			return nil, err
		}
		all, err := k.All(ctx)
		var jobs []seeds.App
		for _, f := range all {
			jobs = append(jobs, seeds.Of(f))
		}
		return jobs, err
	})
	if err != nil {
		refuseJob(w, "", err)
		return
	}
	s.answerValue(w, seeds.PAIList(jobs, r.URL.Query().Get("username")))
}

// paiExecution stops a job. A stopped one is not started here.
func (s *Server) paiExecution(w http.ResponseWriter, r *http.Request) {
	app := r.PathValue("app")
	var body struct {
		Value string `json:"value"`
	}
	err := s.mayAct(r)
	if err == nil {
		err = exit.With(exit.Usage, appdef.CheckName("app", app))
	}
	if err == nil {
		err = exit.With(exit.Usage, json.NewDecoder(r.Body).Decode(&body))
	}
	if err == nil && body.Value != "STOP" {
		refusePAI(w, http.StatusNotImplemented, "NotOffered", "value "+strconv.Quote(body.Value)+
			": want STOP; muster run starts a job again")
		return
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute) // asked to the end
		defer cancel()
		err = asked{s, r}.Stop(ctx, "")
	}
	if err != nil {
		refuseJob(w, app, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": "job " + app + " is asked to stop"}) // as above
}
