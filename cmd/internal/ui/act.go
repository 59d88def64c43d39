package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// errNoRight refuses a caller who may look only.
var errNoRight = errors.New("may look at apps, and not act on them")

// acts are the routes that change something: each the verb of the same name, which returns when the app was asked.
func (s *Server) acts(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/apps/{app}/stop", s.acting(stop))
	mux.HandleFunc("POST /api/v1/apps/{app}/save", s.acting(save))
	mux.HandleFunc("POST /api/v1/apps/{app}/flex", s.acting(flex))
	mux.HandleFunc("POST /api/v1/apps/{app}/instances/{instance}/signal", s.acting(signal))
	mux.HandleFunc("POST /api/v1/apps/{app}/instances/{instance}/hold", s.acting(hold))
	mux.HandleFunc("POST /api/v1/apps/{app}/key", s.key)
	mux.HandleFunc("GET /api/v1/apps/{app}/flex", s.explainFlex)
	mux.HandleFunc("POST /api/v1/apps/{app}/instances/{instance}/terminal", s.terminal)
	mux.HandleFunc("POST /api/v1/terminals/{id}", s.typed)
}

const mostBody = 64 << 10

// said is the answer of an act: what the verb would have printed.
type said struct {
	Version int    `json:"version"`
	Said    string `json:"said"`
}

// acting lets through who may act, and answers what was said.
func (s *Server) acting(do func(context.Context, console.Streams, act) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := s.actOf(r)
		var out bytes.Buffer
		if err == nil {
			a.lookup.Warn = &out
			err = do(r.Context(), console.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, a)
		}
		s.tellAct(r, err)
		if err != nil {
			refuse(w, err)
			return
		}
		s.answerValue(w, said{Version: 1, Said: strings.TrimSpace(out.String())})
	}
}

// actOf is what a request asks for, if it may.
func (s *Server) actOf(r *http.Request) (a act, err error) {
	if err := s.mayAct(r); err != nil {
		return a, err
	}
	a = act{app: r.PathValue("app"), instance: r.PathValue("instance")}
	if err := appdef.CheckName("app", a.app); err != nil {
		return a, exit.With(exit.Usage, err)
	}
	if a.body, err = io.ReadAll(r.Body); err != nil {
		return a, err
	}
	a.lookup, err = s.Lookup(a.app)
	a.lookup.Warn, a.lookup.Who = io.Discard, callerOf(r.Context()).Name
	return a, err
}

// key makes a key that logs in to the instances of an app for a while.
func (s *Server) key(w http.ResponseWriter, r *http.Request) {
	a, err := s.actOf(r)
	out := issued{Version: 1}
	if err == nil {
		out.Issued, err = issueKey(r.Context(), a)
	}
	s.tellAct(r, err)
	if err != nil {
		refuse(w, err)
		return
	}
	s.answerValue(w, out)
}

// mayAct refuses who may only look, and what a stranger's page has a browser send.
func (s *Server) mayAct(r *http.Request) error {
	c := callerOf(r.Context())
	if !c.Act {
		return exit.With(exit.Forbidden, fmt.Errorf("%s %w", cmp.Or(c.Name, "this user"), errNoRight))
	}
	if c.browser && !s.sameOrigin(r) {
		return exit.With(exit.Forbidden, fmt.Errorf("origin %q: only this server's own page may act",
			r.Header.Get("Origin")))
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return exit.Usagef("content type %q: want application/json", r.Header.Get("Content-Type"))
	}
	return nil
}

func (s *Server) tellAct(r *http.Request, err error) {
	if s.Log == nil {
		return
	}
	attrs := []any{"user", cmp.Or(callerOf(r.Context()).Name, apps.Asker()), "act", r.URL.Path}
	if err != nil {
		s.Log.Warn("refused", append(attrs, "cause", err)...)
		return
	}
	s.Log.Info("asked", attrs...)
}

func stop(ctx context.Context, out console.Streams, a act) error {
	var body struct {
		Grace *float64 `json:"grace"` // seconds; absent: the definition's
		Save  bool     `json:"save"`
	}
	if err := a.into(&body); err != nil {
		return err
	}
	o := ask.StopOptions{Save: body.Save, Timeout: saveTimeout, NoWait: true}
	if body.Grace != nil {
		o.Grace = new(time.Duration(*body.Grace * float64(time.Second)))
	}
	return ask.Stop(ctx, out, a.lookup, a.app, o)
}

// saveTimeout is for how long a stop waits for the save before it, as muster stop does.
const saveTimeout = 10 * time.Minute

func save(ctx context.Context, out console.Streams, a act) error {
	if err := a.into(&struct{}{}); err != nil {
		return err
	}
	return ask.Save(ctx, out, a.lookup, a.app, ask.SaveOptions{NoWait: true})
}

func flex(ctx context.Context, out console.Streams, a act) error {
	var body struct {
		Counts map[string]int `json:"counts"`
	}
	if err := a.into(&body); err != nil {
		return err
	}
	return ask.Flex(ctx, out, a.lookup, a.app, counts(body.Counts), ask.FlexOptions{NoWait: true})
}

// counts are counts as muster flex takes them.
func counts(all map[string]int) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		words = append(words, name+"="+strconv.Itoa(all[name]))
	}
	return words
}

// explainFlex tells what a flex to the counts of the query, ?COMPONENT=COUNT, would do.
func (s *Server) explainFlex(w http.ResponseWriter, r *http.Request) {
	var words []string
	for name, values := range r.URL.Query() {
		words = append(words, name+"="+values[0])
	}
	slices.Sort(words)
	var out bytes.Buffer
	k, err := s.Lookup(r.PathValue("app"))
	if err == nil {
		err = ask.Flex(r.Context(), console.Streams{Out: &out, Err: io.Discard}, k, r.PathValue("app"), words,
			ask.FlexOptions{Explain: true, JSON: true})
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out.Bytes()) // fails when the browser is gone
}

func signal(ctx context.Context, _ console.Streams, a act) error {
	var body struct {
		Signal string `json:"signal"`
	}
	if err := a.into(&body); err != nil {
		return err
	}
	if _, err := registry.ParseInstance(a.instance); err != nil {
		return exit.With(exit.Usage, err)
	}
	return ask.Signal(ctx, a.lookup, a.app+"/"+a.instance, body.Signal)
}
