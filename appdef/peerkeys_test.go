package appdef

import (
	"slices"
	"testing"
)

func TestPeerKeys(t *testing.T) {
	app := &App{
		Contents: Contents{ConfigFiles: []ConfigFile{{Dictionary: "server"}}},
		Defaults: map[string]map[string]string{
			"server": {"zookeeper.connect": "${ZOO_HOST}:2181", "own": "${zoo_HOST}", "quiet": "no"},
			"other":  {"zookeeper.connect": "${ZOO_HOST}"}, // nobody receives it
		},
		Components: []Component{
			{Name: "zoo", Config: map[string]string{"site.server.port": "${zoo.ALLOCATED_PORT}"}},
			{
				Name: "broker",
				Config: map[string]string{
					"site.server.port": "${zoo.ALLOCATED_PORT}", "site.server.own": "mine", "muster.command": "serve ${broker_HOST}",
					"site.server.me": "${THIS_HOST}",
				},
				Scripts: Scripts{Commands: []Command{{Exec: "serve --with ${zoo_HOST}"}, {Name: "STOP", Exec: "true"}}},
			},
		},
	}
	for _, c := range []struct {
		reader, peer string
		want         []string
	}{
		{"broker", "zoo", []string{"START", "site.server.port", "site.server.zookeeper.connect"}},
		{"broker", "broker", []string{"muster.command"}},
		{"zoo", "broker", nil},
		{"zoo", "zoo", []string{"site.server.own", "site.server.zookeeper.connect"}},
		{"none", "zoo", nil},
	} {
		if got := app.PeerKeys(c.reader, c.peer); !slices.Equal(got, c.want) {
			t.Errorf("PeerKeys(%s, %s) = %q, want %q", c.reader, c.peer, got, c.want)
		}
	}
}
