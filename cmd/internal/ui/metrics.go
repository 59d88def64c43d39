package ui

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/metrics"
	"github.com/muster-agent/muster/shim/status"
)

// atOnce bounds how many apps' agents are asked for metrics in one moment.
const atOnce = 16

// metrics answers what is known of all apps whose run goes on, in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := s.list(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	rows := slices.DeleteFunc(slices.Clone(all.Apps), func(row apps.Row) bool { return !row.Running() })
	slices.SortFunc(rows, func(a, b apps.Row) int { return cmp.Compare(a.App, b.App) })
	said := make([]map[string][]byte, len(rows))
	var wg sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i := range rows {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			said[i] = s.metricsOf(r.Context(), rows[i].App)
		})
	}
	wg.Wait()
	w.Header().Set("Content-Type", metrics.ContentType)
	set := setOf(rows, said)
	_ = set.Write(w) // fails when the caller is gone
}

// metricsOf are the texts of the agents of an app that answer, by instance.
func (s *Server) metricsOf(ctx context.Context, app string) map[string][]byte {
	k, facts, err := s.factsOf(ctx, app)
	if err != nil {
		return nil
	}
	return apps.EachAgent(ctx, k, &facts, func(ctx context.Context, c *status.Client) ([]byte, error) {
		var text bytes.Buffer
		err := c.Metrics(ctx, &limited{&text, metrics.MostText})
		return text.Bytes(), err
	})
}

// limited takes so many bytes and no more.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, bytes.ErrTooLarge
	}
	return l.to.Write(b)
}

func setOf(rows []apps.Row, said []map[string][]byte) metrics.Set {
	var set metrics.Set
	for i, row := range rows {
		answered := 0
		for _, name := range slices.Sorted(maps.Keys(said[i])) {
			in, err := registry.ParseInstance(name)
			if err == nil {
				err = set.Read(bytes.NewReader(said[i][name]), row.App, status.IdentityOf(in))
			}
			if err == nil {
				answered++
			}
		}
		set.AddApp(metrics.App{
			App: row.App, Phase: row.Phase, Started: row.Started,
			Live: row.Live, Unreachable: max(row.Live-answered, 0),
		})
	}
	return set
}
