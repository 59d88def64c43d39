package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
)

// curves are the samples of the instances of an app whose agents have answered, or have left them.
type curves struct {
	Version   int             `json:"version"`
	Instances []samples.Table `json:"instances"`
}

// samples answers what each instance used after the second of Unix time that ?since= names, also of a run that only the
// history store has.
func (s *Server) samples(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("since")
	since, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		refuse(w, exit.Usagef("since %q: want whole seconds of Unix time", text))
		return
	}
	k, facts, err := s.factsOf(r.Context(), r.PathValue("app"))
	if err != nil {
		refuse(w, err)
		return
	}
	out := curves{Version: 1, Instances: []samples.Table{}}
	if facts.Past != nil {
		if out.Instances, err = facts.Past.Samples(r.Context(), since); err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Cache-Control", "private, max-age=60") // a page asks each 5 s, and they change no more
	}
	ask := func(ctx context.Context, c *status.Client) (samples.Table, error) { return c.Samples(ctx, since) }
	answered := apps.EachAgent(r.Context(), k, &facts, ask)
	for _, t := range answered {
		out.Instances = append(out.Instances, t)
	}
	left, err := s.left(r.Context(), k, &facts, answered)
	if err != nil && len(answered) == 0 {
		refuse(w, err)
		return
	}
	for _, t := range left {
		out.Instances = append(out.Instances, t.After(since))
	}
	slices.SortFunc(out.Instances, func(a, b samples.Table) int { return cmp.Compare(a.Instance, b.Instance) })
	s.answerValue(w, out)
}

// left is what the history store has of the samples of those instances of the app's run whose agents did not answer;
// none where it has none.
func (s *Server) left(
	ctx context.Context, k apps.Lookup, facts *apps.Facts, answered map[string]samples.Table,
) ([]samples.Table, error) {
	id, run := facts.ID, facts.Run()
	if k.Past.Store == nil || facts.Past != nil || run == "" || !mayHaveLeft(facts, len(answered)) { // "": the last run
		return nil, nil
	}
	all, err := s.looks.kept.get(ctx, id+"/"+run, func(ctx context.Context) ([]samples.Table, error) {
		kept, err := k.Past.Store.Load(ctx, id, run)
		if errors.Is(err, registry.ErrNoApp) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return kept.Samples(ctx, 0)
	})
	return slices.DeleteFunc(slices.Clone(all), func(t samples.Table) bool {
		_, there := answered[t.Instance]
		return there
	}), err
}

// mayHaveLeft tells that some agents of the run may have left their samples: not all have answered, or, where no
// registry tells of any, the run is over and no agent of this host lives.
func mayHaveLeft(facts *apps.Facts, answered int) bool {
	if st := facts.Registry; st != nil {
		return answered == 0 || answered != len(st.Members)
	}
	return facts.Outcome() != nil && !facts.Living()
}

// factsOf finds out about one app.
func (s *Server) factsOf(ctx context.Context, app string) (apps.Lookup, apps.Facts, error) {
	k, err := s.Lookup(app)
	if err != nil {
		return k, apps.Facts{}, err
	}
	facts, err := k.App(ctx, app)
	return k, facts, err
}
