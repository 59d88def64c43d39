package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/remote"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

// onRegistry are the routes that verbs with --ui ask in place of a registry and of agents (package remote).
func (s *Server) onRegistry(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/registry", s.told(s.me))
	mux.HandleFunc("GET /api/v1/apps/{app}/registry", s.told(s.word))
	mux.HandleFunc("GET /api/v1/apps/{app}/definition", s.told(s.definition))
	mux.HandleFunc("GET /api/v1/apps/{app}/verdict", s.told(s.verdict))
	mux.HandleFunc("GET /api/v1/apps/{app}/states", s.told(s.states))
	mux.HandleFunc("POST /api/v1/apps/{app}/asks", s.told(s.ask))
	mux.HandleFunc("GET /api/v1/apps/{app}/instances/{instance}/agent/v1/logs/{name}", s.throughTo(false))
	mux.HandleFunc("GET /api/v1/apps/{app}/instances/{instance}/agent/v1/samples", s.throughTo(false))
	mux.HandleFunc("POST /api/v1/apps/{app}/instances/{instance}/agent/v1/{act}", s.throughTo(true))
}

// told answers what a question finds out, or why not.
func (s *Server) told(ask func(k apps.Lookup, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k, err := s.inRegistry(r)
		var value any
		if err == nil {
			value, err = ask(k, r)
		}
		if err != nil {
			refuseVerb(w, err)
			return
		}
		s.answerValue(w, value)
	}
}

// inRegistry is where the request's app is looked for, in its user's name.
func (s *Server) inRegistry(r *http.Request) (apps.Lookup, error) {
	app := r.PathValue("app")
	if app != "" {
		if err := appdef.CheckName("app", app); err != nil {
			return apps.Lookup{}, exit.With(exit.Usage, err)
		}
	}
	k, err := s.Lookup(app)
	if err == nil && k.Address.IsZero() {
		err = exit.Usagef("this page shows the apps of its own host alone: --ui is for the page of a registry")
	}
	k.Warn, k.Who = io.Discard, callerOf(r.Context()).Name
	return k, err
}

// refuseVerb answers an error with the exit code that a verb on a host of the registry would have.
func refuseVerb(w http.ResponseWriter, err error) {
	code := statusOf(err)
	if errors.Is(err, registry.ErrUnreachable) || errors.Is(err, errTooManyActs) {
		code = http.StatusServiceUnavailable
	}
	refuseAs(w, code, remote.Refusal{Error: err.Error(), Code: exit.CodeOf(err)})
}

func (s *Server) me(k apps.Lookup, r *http.Request) (any, error) {
	c := callerOf(r.Context())
	return remote.Me{Version: 1, Registry: k.Address, User: c.Name, Act: c.Act}, nil
}

func (s *Server) word(k apps.Lookup, r *http.Request) (any, error) {
	app := r.PathValue("app")
	st, err := k.Status(r.Context(), k.Address, app)
	if err != nil {
		return nil, toldBy(k, app, err)
	}
	if keysFor(r, st.Verdict) {
		for i, m := range st.Members {
			at := status.Location{Host: m.Addr, Ports: m.Ports, Exports: m.Exports}
			st.Members[i].Exports = gate.Shown(st.App.Token, app, m.Instance.String(), at)
		}
	}
	return remote.Say(st), nil
}

// keysFor tells that who asks gets the keys of an app's pages, in the links to them: a page's own acts know no right
// but its key, so it is for who may act, and while the run lasts.
func keysFor(r *http.Request, over *registry.Verdict) bool {
	return callerOf(r.Context()).Act && over == nil
}

// toldBy is an error of a registry as verbs tell it.
func toldBy(k apps.Lookup, app string, err error) error {
	if errors.Is(err, registry.ErrNoApp) {
		return k.UnknownApp(app, k.Address)
	}
	return apps.RegistryError(k.Address, err)
}

func (s *Server) definition(k apps.Lookup, r *http.Request) (any, error) {
	facts, err := k.App(r.Context(), r.PathValue("app"))
	if err != nil {
		return nil, err
	}
	if facts.Registry == nil {
		return nil, facts.NoRegistry("what it was made of stands there")
	}
	return remote.Describe(facts.Registry.App)
}

func (s *Server) verdict(k apps.Lookup, r *http.Request) (any, error) {
	c, err := k.Open(k.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(r.Context(), apps.Patience)
	defer cancel()
	v, err := c.Verdict(ctx, r.PathValue("app"), r.URL.Query().Get("run"))
	if err != nil {
		return nil, toldBy(k, r.PathValue("app"), err)
	}
	return remote.Verdict{Version: 1, Verdict: v}, nil
}

func (s *Server) states(k apps.Lookup, r *http.Request) (any, error) {
	facts, err := k.App(r.Context(), r.PathValue("app"))
	if err != nil {
		return nil, err
	}
	facts.AskPeers(r.Context())
	answer := remote.States{Version: 1, States: []status.State{}}
	shown := facts.Registry != nil && keysFor(r, facts.Registry.Verdict)
	for _, st := range facts.Peers {
		if shown {
			st.Exports = gate.Shown(facts.Registry.App.Token, facts.ID, st.Instance.Instance, st.Location)
		}
		answer.States = append(answer.States, st)
	}
	return answer, nil
}

// ask stores a request for the conductor. In whose name is the page's to say.
func (s *Server) ask(k apps.Lookup, r *http.Request) (any, error) {
	var ask registry.Ask
	a := act{app: r.PathValue("app")}
	err := s.mayAct(r)
	if err == nil {
		a.body, err = io.ReadAll(r.Body)
	}
	if err == nil {
		err = a.into(&ask)
	}
	if err == nil {
		err = inNameOf(&ask, cmp.Or(k.Who, apps.Asker()))
	}
	answer := remote.Asked{Version: 1, Asked: true}
	switch {
	case err != nil:
	case r.URL.Query().Get("again") == "true":
		answer.Asked, err = askAgain(r.Context(), k, a.app, ask)
	default:
		err = k.Ask(r.Context(), k.Address, a.app, ask)
	}
	s.tellAct(r, err)
	return answer, err
}

// inNameOf has a request be a user's, whoever it says it is of.
func inNameOf(ask *registry.Ask, user string) error {
	ask.Gen = 0 // the registry's to say
	switch ask.Kind {
	case registry.AskFlex, registry.AskSave:
		ask.By = user
	case registry.AskStop:
		if ask.Args == nil {
			ask.Args = map[string]string{}
		}
		ask.By, ask.Args["who"] = "stop", user
	default:
		return exit.Usagef("ask %q: want stop, flex or save", ask.Kind)
	}
	if !askForm(ask.ID) || !askForm(ask.Run) {
		return exit.Usagef("ask: want an id and a run of letters, digits and dashes")
	}
	return nil
}

// askForm tells whether a text may be a part of a key.
func askForm(text string) bool {
	const most = 128
	for _, r := range text {
		if !(r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return len(text) <= most
}

func askAgain(ctx context.Context, k apps.Lookup, app string, ask registry.Ask) (bool, error) {
	c, err := k.Open(k.Address)
	if err != nil {
		return false, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	return c.AskAgain(ctx, app, ask)
}

// agentActs are what an agent does for who shows a grant.
var agentActs = []string{"signal", "hold", "command", "exec"}

// throughTo answers what an instance's agent answers. To act takes the right, and a grant of the registry each time.
func (s *Server) throughTo(acts bool) http.HandlerFunc {
	var under atomic.Int32 // acts that go on: programs with their streams
	return func(w http.ResponseWriter, r *http.Request) {
		k, err := s.inRegistry(r)
		if _, bad := registry.ParseInstance(r.PathValue("instance")); bad != nil && err == nil {
			err = exit.With(exit.Usage, bad)
		}
		if acts && err == nil {
			defer under.Add(-1)
			err = s.mayBegin(r, under.Add(1))
		}
		var agent *status.Client
		if err == nil {
			agent, err = s.agentOf(r, k, acts)
		}
		if acts {
			s.tellAct(r, err)
		}
		if err != nil {
			refuseVerb(w, err)
			return
		}
		defer agent.Close()
		path := r.URL.EscapedPath()
		agent.Forward(w, r, path[strings.LastIndex(path, "/agent/")+len("/agent"):])
	}
}

// errTooManyActs refuses a verb, which has no terminal to close.
var errTooManyActs = exit.With(exit.Registry, fmt.Errorf("this page has %d programs and acts of verbs under way: try "+
	"again when one has ended", mostTerminals))

// mayBegin refuses an act that its user may not ask for, or that is one too many.
func (s *Server) mayBegin(r *http.Request, under int32) error {
	if !slices.Contains(agentActs, r.PathValue("act")) {
		return exit.Usagef("act %q: want %s", r.PathValue("act"), strings.Join(agentActs, ", "))
	}
	if err := s.mayAct(r); err != nil {
		return err
	}
	if under > mostTerminals {
		return errTooManyActs
	}
	return nil
}

func (s *Server) agentOf(r *http.Request, k apps.Lookup, acts bool) (*status.Client, error) {
	word := r.PathValue("app") + "/" + r.PathValue("instance")
	if acts {
		_, agent, err := k.Agent(r.Context(), word)
		return agent, err
	}
	app := r.PathValue("app")
	facts, err := s.looks.facts.get(r.Context(), app, func(ctx context.Context) (apps.Facts, error) {
		return k.App(ctx, app)
	})
	if err != nil {
		return nil, err
	}
	if agent := facts.Agent(r.PathValue("instance")); agent != nil {
		return agent, nil
	}
	return nil, fmt.Errorf("%s has no agent that answers on other hosts", word)
}
