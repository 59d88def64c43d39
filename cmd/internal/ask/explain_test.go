package ask

import (
	"maps"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// What a flex restarts follows from what processes are told of each other.
func TestExplainFlex(t *testing.T) {
	component := func(name, role string, n int) appdef.Component {
		c := appdef.Component{Name: name, Instances: n, Config: map[string]string{"site.global.all": "${worker_HOST}"}}
		c.Settings.Role = appdef.Role(role)
		c.Settings.Restart.Scope = appdef.ScopeInstance
		return c
	}
	for name, tt := range map[string]struct {
		change func(*appdef.App)
		want   map[string]int
		stops  string
		starts string
		again  string
		why    string
		keeps  string
	}{
		"one more": {
			want: map[string]int{"worker": 3}, starts: "worker-2", why: "other processes know the instances that start or stop by their settings alone, and run on",
			keeps: "site.global.all of ps, site.global.all of worker, site.global.all of board",
		},
		"both ways": {
			want: map[string]int{"worker": 1, "ps": 2}, starts: "ps-1", stops: "worker-1",
			why:   "other processes know the instances that start or stop by their settings alone, and run on",
			keeps: "site.global.all of ps, site.global.all of worker, site.global.all of board",
		},
		"services": {
			want: map[string]int{"board": 0}, stops: "board-0", why: "no other process is told of the instances that start or stop",
			change: func(a *appdef.App) { a.Settings.Framework = "pytorch" },
		},
		"a default of the package, and a port": {
			want: map[string]int{"worker": 3}, starts: "worker-2", why: "other processes know the instances that start or stop by their settings alone, and run on",
			change: func(a *appdef.App) {
				for i := range a.Components {
					a.Components[i].Config = map[string]string{"site.global.port": "${worker.ALLOCATED_PORT}"}
				}
				a.Defaults = map[string]map[string]string{"global": {"connect": "${WORKER_HOST}:1"}}
			},
			keeps: "site.global.connect of ps, site.global.port of ps, site.global.connect of worker, site.global.connect of board, site.global.port of board",
		},
		"an evaluator, which TonY has in its cluster": {
			want: map[string]int{"ps": 2}, starts: "ps-1", again: "ps-0 worker-0 worker-1",
			why: "ps: each process of tony is told who the others are",
			change: func(a *appdef.App) {
				a.Settings.Framework = "tony"
				a.Components[0].Settings.Role = appdef.RoleEvaluator
			},
		},
		"an evaluator of another framework": {
			want: map[string]int{"ps": 2}, starts: "ps-1", why: "other processes know the instances that start or stop by their settings alone, and run on",
			change: func(a *appdef.App) {
				a.Settings.Framework, a.Components[0].Settings.Role = "tensorflow", appdef.RoleEvaluator
				a.Components[0].Config = map[string]string{"site.global.mine": "${ps_HOST}"}
			},
			keeps: "site.global.mine of ps",
		},
		"a framework": {
			want: map[string]int{"worker": 3}, starts: "worker-2", again: "ps-0 worker-0 worker-1",
			why:    "worker: each process of tensorflow is told who the others are",
			change: func(a *appdef.App) { a.Settings.Framework = "tensorflow" },
		},
		"together": {
			want: map[string]int{"ps": 2}, starts: "ps-1", again: "ps-0 worker-0 worker-1",
			why:    "ps: muster.restart is gang: its processes belong together",
			change: func(a *appdef.App) { a.Components[0].Settings.Restart.Scope = appdef.ScopeGang },
		},
		"shares of inputs": {
			want: map[string]int{"worker": 1}, stops: "worker-1", again: "ps-0 worker-0",
			why:    "worker: its instances share the files of their inputs out among themselves",
			change: func(a *appdef.App) { a.Components[1].Settings.Inputs.From = map[string]string{"data": "file:/d"} },
		},
		"another component of a gang": {
			want: map[string]int{"worker": 3}, starts: "worker-2", why: "other processes know the instances that start or stop by their settings alone, and run on",
			change: func(a *appdef.App) { a.Components[0].Settings.Restart.Scope = appdef.ScopeGang },
			keeps:  "site.global.all of ps, site.global.all of worker, site.global.all of board",
		},
		"nothing": {want: map[string]int{"worker": 2}, why: "nothing changes"},
	} {
		app := appdef.App{Dialect: "slider"}
		app.Components = []appdef.Component{
			component("ps", "ps", 1), component("worker", "worker", 2), component("board", "service", 1),
		}
		app.Settings.Framework = "none"
		if tt.change != nil {
			tt.change(&app)
		}
		have := app.Counts()
		want := app.Counts()
		maps.Copy(want, tt.want)
		p := explainFlex(app, have, want)
		got := []string{strings.Join(p.Stops, " "), strings.Join(p.Starts, " "), strings.Join(p.Restarts, " "), p.Why, strings.Join(p.Keeps, ", ")}
		for i, want := range []string{tt.stops, tt.starts, tt.again, tt.why, tt.keeps} {
			if got[i] != want {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}
