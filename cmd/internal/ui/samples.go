package ui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/cmd/internal/apps"
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
	for _, t := range apps.EachAgent(r.Context(), k, &facts, ask) {
		out.Instances = append(out.Instances, t)
	}
	if len(out.Instances) == 0 && facts.Past == nil { // the registry knows the run still, and its agents have left
		out.Instances = kept(r.Context(), k, &facts, since)
	}
	slices.SortFunc(out.Instances, func(a, b samples.Table) int { return cmp.Compare(a.Instance, b.Instance) })
	s.answerValue(w, out)
}

// kept is what the history store has of the samples of the app's run; none where it has none.
func kept(ctx context.Context, k apps.Lookup, facts *apps.Facts, since int64) []samples.Table {
	none := []samples.Table{}
	if k.Past.Store == nil || facts.Registry == nil || facts.Registry.App.Run == "" { // "" would be the last run
		return none
	}
	run, err := k.Past.Store.Load(ctx, facts.ID, facts.Registry.App.Run)
	if err != nil {
		return none
	}
	found, err := run.Samples(ctx, since)
	if err != nil || found == nil {
		return none
	}
	return found
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
