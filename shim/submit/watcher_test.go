package submit

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/gate"
)

// The line about an HBox job's page has its key where the export leads to the instance's own host, and nowhere else.
func TestPagesHaveTheirKeys(t *testing.T) {
	worker := registry.Instance{Component: "worker"}
	key, err := gate.Key("t", "d1", worker.String(), "board")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"http://10.0.0.1:7001":         "board url: http://10.0.0.1:7001/?token=" + key,
		"http://other.example:7001":    "board url: http://other.example:7001",
		"http://worker1.example:7001/": "board url: http://worker1.example:7001/",
	} {
		var lines []string
		w := &watcher{hbox: true, print: func(line string) { lines = append(lines, line) }, st: &consul.Status{
			ID: "d1", App: registry.AppRecord{Token: "t"}, Members: []consul.MemberStatus{{
				Instance: worker, Live: true, Member: registry.Member{
					Addr: "10.0.0.1", Host: "worker1", Ports: map[string]int{"side.board": 7001, "side.board.inner": 7002},
					Exports: map[string]string{"worker.board": at},
				},
			}},
		}}
		w.pages()
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
}
