package apps

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/status"
)

func TestTroubleFirst(t *testing.T) {
	row := func(name, phase string, exit, failures int) status.Instance {
		in := status.Instance{Identity: status.Identity{Instance: name}, Phase: phase}
		if exit >= 0 {
			in.Exit = &exit
		}
		in.Failures = failures
		return in
	}
	rows := []status.Instance{
		row("a", "running", -1, 0), row("b", "done", 0, 0), row("c", "backoff", 1, 1), row("d", "running", -1, 2),
		row("e", "waiting", -1, 0), row("f", "done", 3, 1), row("g", "later", -1, 0),
	}
	var names []string
	for _, in := range TroubleFirst(rows) {
		names = append(names, in.Instance)
	}
	if got := strings.Join(names, " "); got != "c f g e a d b" {
		t.Errorf("got %s", got)
	}
	if got := Counts(rows); got != "7 instances: 1 backoff, 2 done, 1 later, 1 waiting, 2 running" {
		t.Errorf("got %s", got)
	}
	if got := Counts(rows[:1]); got != "1 instance: 1 running" {
		t.Errorf("got %s", got)
	}
}
