package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// A folder is kept in one place: where more than one instance has it, one is named.
func TestSideThatIsKept(t *testing.T) {
	for _, c := range []struct {
		name          string
		side          appdef.Side
		want, problem string
	}{
		{"of one", appdef.Side{Index: 0, Folder: "runs", History: "/h"}, "hdfs://nn/h", ""},
		{"with its filesystem", appdef.Side{Index: 0, Folder: "runs", History: "file:///h"}, "file:///h", ""},
		{"of all", appdef.Side{Index: appdef.EveryIndex, Folder: "runs", History: "/h"}, "hdfs://nn/h", "muster.side.board.index, too"},
		{"no folder", appdef.Side{Index: 0, History: "/h"}, "hdfs://nn/h", "muster.side.board.folder, too"},
		{"a web server", appdef.Side{Index: 0, Folder: "runs", History: "https://h/x"}, "https://h/x", "nothing is left on a web server"},
		{"nowhere", appdef.Side{Index: 0, Folder: "runs"}, "", ""},
	} {
		app := with(trainingApp(), "worker", func(w *appdef.Component) {
			c.side.Name, c.side.Command, w.Instances = "board", "b", 2
			w.Settings.Sides = []appdef.Side{c.side}
		})
		p, problems := Build(app, Request{AppID: "a", Component: "worker", DefaultFS: "hdfs://nn", Starts: true})
		said := ""
		if len(problems) > 0 {
			said = problems.Error()
		}
		if len(p.Sides) != 1 || p.Sides[0].History != c.want || !strings.Contains(said, c.problem) || strings.Contains(said, "\n") != (c.problem != "") {
			t.Errorf("%s: got %+v, %q", c.name, p.Sides, said)
		}
	}
}

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

// Behind a key it listens at a second port; without a port there is nothing to ask for the key at.
func TestSideBehindAKey(t *testing.T) {
	for _, port := range []bool{true, false} {
		app := with(trainingApp(), "worker", func(c *appdef.Component) {
			c.Settings.Sides = []appdef.Side{{Name: "board", Command: "b {{port.side.board.inner}}", Index: appdef.EveryIndex, Port: port, Key: true}}
		})
		p, problems := Build(app, Request{AppID: "a", Component: "worker"})
		found := len(problems) > 0 && strings.Contains(problems.Error(), "muster.side.board.key=true without a port")
		inner := slices.ContainsFunc(p.Ports, func(one Port) bool { return one.Name == "side.board.inner" })
		if found == port || port && (!inner || len(p.Sides) != 1 || p.Sides[0].Inner != "side.board.inner") {
			t.Errorf("with a port %t: %+v, %+v, %v", port, p.Sides, p.Ports, problems)
		}
	}
}

// A command that listens at the port of the agent, or at a second port that is not there, is told before it runs.
func TestSideListensBehindItsKey(t *testing.T) {
	for command, want := range map[string]map[bool]string{
		"b {{port.side.board}}":       {true: "at which the agent asks for a key", false: ""},
		"b {{port.side.board.inner}}": {true: "", false: "without a key there is no second port"},
		`b "$MUSTER_PORT_SIDE_BOARD"`: {
			true: "MUSTER_PORT_SIDE_BOARD in muster.side.board, at which the agent asks for a key, " +
				"want MUSTER_PORT_SIDE_BOARD_INNER, at 127.0.0.1", false: "",
		},
		"b $MUSTER_PORT_SIDE_BOARD_INNER":                            {true: "", false: ""},
		"b ${MUSTER_PORT_SIDE_BOARD_INNER:-$MUSTER_PORT_SIDE_BOARD}": {true: "", false: ""},
		"b $MUSTER_PORT_SIDE_BOARDS":                                 {true: "", false: ""},
		"b $MUSTER_PORT_SIDE_BOARD {{port.side.board.inner}}":        {true: "", false: "without a key"},
		"b {{port.side.board}} $MUSTER_PORT_SIDE_BOARD_INNER":        {true: "", false: ""},
	} {
		for key, problem := range want {
			app := with(trainingApp(), "worker", func(c *appdef.Component) {
				c.Settings.Sides = []appdef.Side{{Name: "board", Command: command, Index: appdef.EveryIndex, Port: true, Key: key}}
			})
			said := ""
			if _, problems := Build(app, Request{AppID: "a", Component: "worker"}); len(problems) > 0 {
				said = problems.Error()
			}
			if !strings.Contains(said, problem) || problem == "" && strings.Contains(said, "muster.side.board") {
				t.Errorf("%s with a key %t: got %q, want %q", command, key, said, problem)
			}
		}
	}
}

// A command that names a port that no side process of the instance has would get the text of the placeholder.
func TestSideNamesAPort(t *testing.T) {
	for _, c := range []struct {
		name, command, number string
		port                  bool
		want                  string
	}{
		{"own, without one", "b {{port.side.board}}", "", false, "want muster.side.board.port=true"},
		{"own, with one", "b {{port.side.board}}", "", true, ""},
		{"own, asked for as a certain one", "b {{port.side.board}}", "${worker.ALLOCATED_PORT}{DEFAULT_6006}", false, ""},
		{"of one beside it, without one", "b {{port.side.other}}", "", true, "want muster.side.other.port=true"},
		{"none", "b", "", false, ""},
	} {
		app := with(trainingApp(), "worker", func(w *appdef.Component) {
			w.Settings.Sides = []appdef.Side{
				{Name: "board", Command: c.command, Index: appdef.EveryIndex, Port: c.port},
				{Name: "other", Command: "o", Index: appdef.EveryIndex},
			}
			if c.number != "" {
				w.Config["site.side.board"] = c.number
			}
		})
		said := ""
		if _, problems := Build(app, Request{AppID: "a", Component: "worker"}); len(problems) > 0 {
			said = problems.Error()
		}
		if !strings.Contains(said, c.want) || c.want == "" && strings.Contains(said, "muster.side") {
			t.Errorf("%s: got %q, want %q", c.name, said, c.want)
		}
	}
}
