package gang

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// historyAlone: one of three agents is lost, the others are stopped. When nothing of them is left on any host, the
// history store tells all that they knew, and who has left nothing.
func historyAlone(t *testing.T, at place) {
	g := newGang(t, at, workers(3, nil))
	store := "file://" + filepath.Join(t.TempDir(), "history")
	cast := g.begin("--history", store, "--history-logs", "all")
	for in, a := range cast {
		a.do(cue{Do: "say", Text: "one of " + in})
	}
	lost, left := "worker-1", "worker-2"
	if g.conductor() == lost {
		lost, left = left, lost
	}
	g.agents[lost].kill()
	cast[lost].gone()
	stop := g.beginVerb("stop", g.app) // it waits for the lost one's session
	for in, p := range g.agents {
		if in != lost {
			p.wait()
		}
	}
	stop.kill()
	for _, dir := range []string{g.state, g.work} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		verb string
		args []string
		says []string // in what is printed
		err  string
	}{
		{"ps", nil, []string{g.app, "stopped"}, ""},
		{"status", []string{g.app}, []string{"verdict     stopped", "\nworker-0 ", "\n" + left + " ", "\n" + lost + " "}, lost + " left nothing in the history store"},
		{"logs", []string{g.app + "/" + left, "--stderr"}, []string{"one of " + left}, ""},
		{"logs", []string{g.app}, []string{"worker-0     ! one of worker-0", left + "     ! one of " + left}, ""},
		{"logs", []string{g.app + "/worker-0", "--agent", "--tail", "5"}, []string{"agent ends"}, ""},
		{"events", []string{g.app}, []string{left + "      waiting → running", "leaving → done"}, ""},
		{"events", []string{g.app, "--summary"}, []string{"generation 1", "productive"}, ""},
	} {
		p := start(t, "muster "+c.verb, g.environment(), append([]string{c.verb, "--state-dir", g.state, "--history", store}, c.args...)...)
		code := p.wait()
		for _, words := range c.says {
			if code != 0 || !strings.Contains(p.out()+p.err(), words) || !strings.Contains(p.err(), c.err) {
				t.Errorf("%s %v: code %d, want %q and %q in\n%s%s", c.verb, c.args, code, words, c.err, p.out(), p.err())
			}
		}
	}
}
