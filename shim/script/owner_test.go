package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// The matrix: what the instance is, and how it ends, for each START × pid file × STATUS.
//
//   - stays: START is the program, and ends with 0 when that has run to its end. A right pid file has its own number.
//   - leaves: START ends with 0 and leaves a process that lives.
//   - nothing: START ends with 0 and leaves nothing. What a right pid file names was over, with 3, before START was; without
//     one START has started nothing here.
//   - fails late: START ends with 0 and leaves a process, which then exits with 3.
//   - ends well: START ends with 0 and leaves a process, which then exits with 0.
//
// STATUS says yes or no throughout, but for a program that has ended; or there is none. A wrong pid file has the number
// of a process that START did not start; of one elsewhere nothing is seen, and a late one is there after START has ended.
//
// The engine decides nothing: the guard is the parent of what START leaves in each, and says what lives of it and how it
// ended. tests/scripts drives the cells with the guard of each.
var matrix = map[string]map[string][3]string{ //                            STATUS yes, no, none
	"stays": {
		"right":     {"0", "0", "0"},
		"elsewhere": {"0", "failed: no process, STATUS no", "0"},
		"late":      {"0", "failed: no process, STATUS no", "0"},
		"wrong":     {"0", "failed: pid file", "failed: pid file"},
		"none":      {"0", "failed: no process, STATUS no", "0"},
	},
	"leaves": {
		"right":     {"named: up", "named: failed: STATUS no", "named: up"},
		"elsewhere": {"rest: up", "rest: failed: STATUS no", "rest: up"},
		"late":      {"rest: named: up", "rest: named: failed: STATUS no", "rest: named: up"},
		"wrong":     {"rest: up", "rest: failed: STATUS no", "rest: up"},
		"none":      {"rest: up", "rest: failed: STATUS no", "rest: up"},
	},
	"nothing": {
		"right":     {"status: up", "exit 3", "exit 3"},
		"elsewhere": {"status: up", "failed: no process, STATUS no", "0"},
		"late":      {"status: up", "failed: no process, STATUS no", "0"},
		"wrong":     {"status: up", "failed: pid file", "failed: pid file"},
		"none":      {"status: up", "failed: no process, STATUS no", "0"},
	},
	"fails late": {
		"right":     {"named: exit 3", "named: exit 3", "named: exit 3"},
		"elsewhere": {"rest: exit 3", "rest: exit 3", "rest: exit 3"},
		"late":      {"rest: named: exit 3", "rest: named: exit 3", "rest: named: exit 3"},
		"wrong":     {"rest: exit 3", "rest: exit 3", "rest: exit 3"},
		"none":      {"rest: exit 3", "rest: exit 3", "rest: exit 3"},
	},
	"ends well": {
		"right":     {"named: 0", "named: 0", "named: 0"},
		"elsewhere": {"rest: status: up", "failed: no process, STATUS no", "rest: 0"},
		"late":      {"rest: named: 0", "rest: named: 0", "rest: named: 0"},
		"wrong":     {"rest: status: up", "failed: no process, STATUS no", "rest: 0"},
		"none":      {"rest: status: up", "failed: no process, STATUS no", "rest: 0"},
	},
}

var theirs = PID{File: "component.pid", PID: 1}

func TestMatrix(t *testing.T) {
	cells := 0
	for start, files := range matrix {
		for file, wants := range files {
			for i, status := range []string{"yes", "no", "none"} {
				cells++
				if got := live(start, file, status); got != wants[i] {
					t.Errorf("START %s, pid file %s, STATUS %s: got %q, want %q", start, file, status, got, wants[i])
				}
			}
		}
	}
	if cells != 5*5*3 {
		t.Errorf("%d cells", cells)
	}
}

// live tells the life of one instance as the agent drives it.
func live(start, file, status string) string {
	l := Left{Asks: status != "none", Served: start == "stays" && status == "yes", Own: start == "stays" && file == "right"}
	own := PID{File: "component.pid", PID: 17}
	lives := start == "leaves" || start == "fails late" || start == "ends well"
	ends := map[string]*End{"fails late": {Code: 3}, "ends well": {}}
	if lives {
		l.Alive = 1
	}
	switch {
	case file == "right" && start == "nothing":
		own.Over = &End{Code: 3}
		fallthrough
	case file == "right" && start != "stays":
		l.PIDs = []PID{own}
	case file == "wrong" && !lives: // the guard refuses to adopt it, where something lives
		l.PIDs = []PID{theirs}
	}
	var story []string
	owner, out := l.Owner()
	for {
		if owner != Over {
			story = append(story, string(owner))
		}
		switch {
		case owner == Over:
			return strings.Join(append(story, told(out)), ": ")
		case owner == Rest && file == "late":
			owner, file = Named, "right"
		case owner == Named && ends[start] != nil:
			return strings.Join(append(story, told(Outcome{End: ends[start]})), ": ") // the guard says it
		case owner == Rest && ends[start] != nil:
			l.Alive, l.Held, l.Ended = 0, true, ends[start]
			if file == "wrong" { // nothing is there to adopt, and the file is
				l.PIDs = []PID{theirs}
			}
			owner, out = l.Owner()
		case status == "yes" && start != "stays", status == "none":
			return strings.Join(append(story, "up"), ": ")
		case owner == Status:
			story, owner, out = nil, Over, l.Denied(Health{Failures: mostFailures})
		default:
			return strings.Join(append(story, "failed: STATUS no"), ": ")
		}
	}
}

// told is an outcome in the words of the matrix.
func told(o Outcome) string {
	switch {
	case strings.Contains(o.Why, "left no process: process 1 of component.pid"):
		return "failed: pid file"
	case strings.Contains(o.Why, "left no process, and STATUS failed") && strings.HasSuffix(o.Why, hint):
		return "failed: no process, STATUS no"
	case o.Why != "":
		return "failed: " + o.Why
	case o.End != nil && o.End.Signal != 0:
		return fmt.Sprintf("signal %d", o.End.Signal)
	case !o.OK():
		return fmt.Sprintf("exit %d", o.End.Code)
	}
	return "0"
}

// What a package declares, and what the matrix has no column for.
func TestOwner(t *testing.T) {
	crashed, done := &End{Signal: 11}, &End{}
	pid := []PID{{File: "component.pid", PID: 17}}
	over := func(e *End) []PID { return []PID{{File: "component.pid", PID: 17, Over: e}} }
	for name, c := range map[string]struct {
		left  Left
		owner Owner
		want  string
	}{
		"start: it left a helper":                      {Left{Up: appdef.UpStart, Alive: 2, PIDs: pid, Asks: true}, Over, "0"},
		"start: a helper has failed":                   {Left{Up: appdef.UpStart, Ended: crashed}, Over, "0"},
		"process: it left one":                         {Left{Up: appdef.UpProcess, Alive: 1, Asks: true}, Rest, ""},
		"process: it left none":                        {Left{Up: appdef.UpProcess, Asks: true, Served: true}, Over, "failed: START ended with 0 and left no process, which muster.up=process wants: keep the program running after START, or take muster.up=start where START is the program itself"},
		"process: it was over":                         {Left{Up: appdef.UpProcess, Ended: crashed}, Over, "signal 11"},
		"process: it ends well":                        {Left{Up: appdef.UpProcess, Held: true, Ended: done}, Over, "0"},
		"status: whatever lives":                       {Left{Up: appdef.UpStatus, Alive: 3, PIDs: pid, Asks: true}, Status, ""},
		"status: nothing lives":                        {Left{Up: appdef.UpStatus, Asks: true, Ended: crashed}, Status, ""},
		"status: there is none":                        {Left{Up: appdef.UpStatus, Alive: 1}, Over, "failed: START ended with 0 and there is no STATUS to ask, which muster.up=status needs: add one to the package, or take muster.up=process"},
		"several, one named":                           {Left{Alive: 3, PIDs: pid}, Named, ""},
		"several, the named one has crashed":           {Left{Alive: 2, PIDs: over(crashed), Asks: true}, Over, "signal 11"},
		"several, the named one was a launcher":        {Left{Alive: 2, PIDs: over(done)}, Rest, ""},
		"several, the named one was ended by START":    {Left{Alive: 2, PIDs: over(&End{Signal: 15})}, Rest, ""},
		"two are named, and a helper has failed":       {Left{Alive: 1, PIDs: append(over(crashed), pid...)}, Named, ""},
		"two are named, and pid_file's has failed":     {Left{Alive: 1, PIDs: append([]PID{{Main: true, Over: crashed}}, pid...)}, Over, "signal 11"},
		"two are named, and START has ended one":       {Left{Alive: 1, PIDs: append([]PID{{Main: true, Over: &End{Code: 143}}}, pid...)}, Named, ""},
		"the named one has crashed, its parent lives":  {Left{Alive: 1, Held: true, Lost: &pid[0], PIDs: over(crashed)}, Rest, ""},
		"its parent has put another in its place":      {Left{Alive: 2, Held: true, Lost: &pid[0], PIDs: pid}, Named, ""},
		"the named one has crashed, its parent said 0": {Left{Held: true, Ended: done, Lost: &over(crashed)[0]}, Over, "signal 11"},
		"the named one ended well, its parent too":     {Left{Held: true, Ended: done, Lost: &over(done)[0]}, Over, "0"},
		"the named one was not seen, its parent said 0": {Left{Held: true, Ended: done, Lost: &pid[0]}, Over, "failed: process 17 of component.pid has ended, " +
			"and its parent, which alone knows how, has ended with 0: let the parent end with the process's exit code, or leave the pid file out"},
		"the named one has crashed, its parent failed": {Left{Held: true, Ended: &End{Code: 8}, Lost: &over(crashed)[0]}, Over, "exit 8"},
		"the named one has crashed, STATUS is asked":   {Left{Held: true, Ended: done, Asks: true, Lost: &over(crashed)[0]}, Status, ""},
		"START's own number, and something lives":      {Left{Alive: 1, Own: true}, Rest, ""}, // echo $$ of a starter: it proves nothing
		"the instance crashed, STATUS says yes":        {Left{Held: true, Ended: crashed, Asks: true, Served: true}, Over, "signal 11"},
		"the instance ended well, and STATUS is asked": {Left{Held: true, Ended: done, Asks: true}, Status, ""}, // it may have handed over
		"the instance ended well, no STATUS":           {Left{Held: true, Ended: done}, Over, "0"},
		"the instance ended unseen":                    {Left{Held: true}, Over, "failed: what START had left behind is gone, and nobody saw how it ended"},
		"it crashed before START ended":                {Left{Ended: crashed}, Over, "signal 11"},
		"it crashed before START ended, with a STATUS": {Left{Ended: crashed, Asks: true}, Status, ""},
		"START has ended its helper":                   {Left{Ended: &End{Signal: 15}}, Over, "0"},
		"START has ended its helper, which says so":    {Left{Ended: &End{Code: 143}}, Over, "0"},
		"what the pid file names was ended":            {Left{Ended: &End{Signal: 15}, PIDs: over(&End{Signal: 15})}, Over, "signal 15"},
		"the instance was ended":                       {Left{Held: true, Ended: &End{Signal: 15}}, Over, "signal 15"},
		"something had ended well before START ended":  {Left{Ended: done}, Over, "0"},
		"START waited for its program":                 {Left{PIDs: pid, Served: true}, Over, "0"},
	} {
		owner, out := c.left.Owner()
		got := ""
		if owner == Over {
			got = told(out)
		}
		if owner != c.owner || got != c.want {
			t.Errorf("%s: got %s, %q, want %s, %q", name, owner, got, c.owner, c.want)
		}
	}
}

// A failure of what START had started may be that of a helper: the author hears what to declare.
func TestTip(t *testing.T) {
	failed := &End{Code: 3}
	for _, c := range []struct {
		left Left
		said bool
	}{
		{Left{Ended: failed}, true},
		{Left{Held: true, Ended: failed}, true},
		{Left{Held: true, Ended: &End{}}, false},
		{Left{Up: appdef.UpProcess, Ended: failed}, false},
	} {
		_, out := c.left.Owner()
		if strings.Contains(out.Tip, "pid_file") != c.said {
			t.Errorf("%+v: %q", c.left, out.Tip)
		}
	}
}

// STATUS was the owner and says no: was it a service that is gone, or START that has run to its end?
func TestDenied(t *testing.T) {
	no := Health{Failures: 2, Why: "no answer"}
	was := Health{Failures: 2, Why: "no answer", Yes: true}
	for name, c := range map[string]struct {
		left   Left
		health Health
		want   string
	}{
		"it served after START had ended":           {Left{Asks: true, Served: true}, was, "failed: STATUS failed 2 times: no answer"},
		"it served while START ran alone":           {Left{Asks: true, Served: true}, no, "0"},
		"it has never served":                       {Left{Asks: true}, no, "failed: no process, STATUS no"},
		"the pid file names START":                  {Left{Asks: true, Own: true}, no, "0"},
		"what START had left had crashed":           {Left{Asks: true, Served: true, Ended: &End{Code: 4}}, no, "exit 4"},
		"the instance ended well after it had been": {Left{Asks: true, Served: true, Held: true, Ended: &End{}}, no, "0"},
		"its parent alone saw how it crashed":       {Left{Asks: true, Served: true, Held: true, Ended: &End{}, Lost: &PID{Over: &End{Signal: 9}}}, no, "signal 9"},
		"the instance ended well and never served":  {Left{Asks: true, Held: true, Ended: &End{}}, no, "failed: no process, STATUS no"},
		"declared": {Left{Up: appdef.UpStatus, Asks: true, Served: true, Own: true}, no, "failed: STATUS failed 2 times: no answer"},
	} {
		if got := told(c.left.Denied(c.health)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// STATUS denies processes that START has left: the author hears what else they may be.
func TestDoubt(t *testing.T) {
	for _, c := range []struct {
		left Left
		said bool
	}{{Left{Alive: 1}, true}, {Left{Alive: 1, Served: true}, false}, {Left{Up: appdef.UpProcess, Alive: 1}, false}} {
		if got := c.left.Doubt(); strings.Contains(got, "let pid_file name") != c.said {
			t.Errorf("%+v: %q", c.left, got)
		}
	}
}
