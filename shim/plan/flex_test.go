package plan

import (
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// A member may come back at another address while the others run where no setting of theirs names it, whatever the
// counts are now.
func TestMoves(t *testing.T) {
	for name, c := range map[string]struct {
		reader, server map[string]string
		readers, most  int
		want           bool
	}{
		"nobody names it":                {readers: 1, most: -1, want: true},
		"another's setting does":         {reader: map[string]string{"site.global.peer": "${server_HOST}"}, readers: 1, most: -1},
		"one that a flex brings":         {reader: map[string]string{"site.global.peer": "${SERVER_HOST}"}, most: -1},
		"its own, of which there is one": {server: map[string]string{"site.global.bind": "${server_HOST}"}, most: 1, want: true},
		"its own, and there may be more": {server: map[string]string{"site.global.peers": "${server_HOST}"}, most: -1},
	} {
		app := appdef.App{Dialect: "slider"}
		app.Settings.Framework = "none"
		app.Components = []appdef.Component{
			{Name: "server", Instances: 1, MaxInstances: c.most, Config: c.server},
			{Name: "reader", Instances: c.readers, MaxInstances: -1, Config: c.reader},
		}
		for i := range app.Components {
			app.Components[i].Settings.Role = appdef.RoleWorker
			app.Components[i].Settings.Restart.Scope = appdef.ScopeInstance
		}
		for _, facts := range Gang(app, Request{}).Components {
			if facts.Name == "server" && (!facts.InPlace || facts.Moves != c.want) {
				t.Errorf("%s: in place %t, moves %t, want true, %t", name, facts.InPlace, facts.Moves, c.want)
			}
		}
	}
}
