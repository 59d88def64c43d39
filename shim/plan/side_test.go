package plan

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// One that serves HTTP is asked at its port; without a port there is nowhere to ask.
func TestSideThatServes(t *testing.T) {
	for _, port := range []bool{true, false} {
		app := with(trainingApp(), "worker", func(c *appdef.Component) {
			c.Settings.Sides = []appdef.Side{{Name: "board", Command: "b", Index: appdef.EveryIndex, Port: port, HTTP: true}}
		})
		p, problems := Build(app, Request{AppID: "a", Component: "worker"})
		found := len(problems) > 0 && strings.Contains(problems.Error(), "muster.side.board.http")
		if found == port || len(p.Sides) != 1 || p.Sides[0].HTTP != port {
			t.Errorf("with a port %t: %+v, %v", port, p.Sides, problems)
		}
	}
}
