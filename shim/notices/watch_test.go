package notices

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
)

// TestHeard: which agent tells of which event, by its ID.
func TestHeard(t *testing.T) {
	at := time.Unix(1000, 0)
	code := 3
	died := &machine.Exit{Code: &code, Message: "no data"}
	directive := func(gen int, act registry.Act, by string) registry.Directive {
		return registry.Directive{Run: "r", Gen: gen, Act: act, By: by, At: at}
	}
	run := func(gen int, by string) registry.Directive { return directive(gen, registry.ActRun, by) }
	rebuild := directive(2, registry.ActWait, "me")
	rebuild.First, rebuild.Why = "worker-1", "worker-1 exited with 3"
	end := directive(2, registry.ActStop, "me")
	end.Verdict = &registry.Verdict{Outcome: registry.Failed, Class: registry.ClassApp, Cause: "why", First: "worker-1"}
	type step struct {
		e      machine.Event
		before machine.Phase
		d      registry.Directive
		change func(*machine.State)
	}
	directed := func(d registry.Directive) step { return step{e: machine.Event{Kind: machine.Directed}, d: d} }
	conducting := func(d registry.Directive, later time.Duration) step {
		return step{e: machine.Event{Kind: machine.Conducting, On: true, At: at.Add(later)}, d: d}
	}
	started := func(gen, attempt int) step {
		return step{e: machine.Event{Kind: machine.Started}, d: run(gen, "other"), change: func(s *machine.State) {
			s.Gen, s.Attempt = gen, attempt
		}}
	}
	gone := func(before machine.Phase, x *machine.Exit) step {
		return step{
			e: machine.Event{Kind: machine.Gone, Exit: x}, before: before, d: run(1, "other"),
			change: func(s *machine.State) { s.Exit, s.Attempt = x, 2 },
		}
	}
	zero := 0
	for name, tt := range map[string]struct {
		steps []step
		want  string
	}{
		"the founder":         {[]step{directed(directive(1, registry.ActWait, "me"))}, ""},
		"the writer":          {[]step{directed(run(1, "me")), directed(rebuild), directed(run(2, "me")), directed(end)}, "start/1 restart/2 start/2 verdict"},
		"another wrote":       {[]step{directed(run(1, "other"))}, ""},
		"written again":       {[]step{directed(run(1, "me")), directed(run(1, "me"))}, "start/1"},
		"the writer died":     {[]step{directed(run(2, "other")), conducting(run(2, "other"), time.Minute)}, "start/2"},
		"told long ago":       {[]step{conducting(run(2, "other"), time.Hour)}, ""},
		"conducts no gang":    {[]step{conducting(registry.Directive{}, time.Hour)}, ""},
		"a restart in place":  {[]step{started(1, 1), gone(machine.Running, died), started(1, 2)}, "failure/worker-0/2 restart/worker-0/2"},
		"a gang's restart":    {[]step{started(1, 1), started(2, 2)}, ""},
		"a replaced instance": {[]step{{e: machine.Event{Kind: machine.Joined}, d: run(1, "other")}, started(1, 2)}, "restart/worker-0/2"},
		"a good end":          {[]step{gone(machine.Running, &machine.Exit{Code: &zero})}, ""},
		"an end asked for":    {[]step{gone(machine.Stopping, died)}, ""},
		"cut off":             {[]step{gone(machine.Running, &machine.Exit{Signal: 9, CutOff: true})}, ""},
		"staging failed": {[]step{{
			e: machine.Event{Kind: machine.StageFailed}, d: run(1, "other"), change: func(s *machine.State) { s.Exit = died },
		}}, "failure/worker-0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := Watch{Self: Self{App: "d1", Inc: "me", Host: "h"}}
			var got []string
			for _, one := range tt.steps {
				s := machine.New()
				s.Instance, s.Directive = registry.Instance{Component: "worker"}, one.d
				before := s
				if before.Phase = one.before; one.change != nil {
					one.change(&s)
				}
				for _, m := range w.Heard(before, one.e, s) {
					got = append(got, strings.TrimPrefix(m.ID, "d1/r/"))
					if !strings.HasPrefix(m.Text, "d1: ") || m.App != "d1" || m.Host != "h" || m.Version != 1 {
						t.Errorf("got %+v", m)
					}
				}
			}
			if !slices.Equal(got, strings.Fields(tt.want)) {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

// TestMessage is the contract with receivers.
func TestMessage(t *testing.T) {
	s := machine.New()
	s.Instance, s.Gen, s.Attempt = registry.Instance{Component: "worker", Index: 1}, 2, 3
	s.Directive.Run = "r"
	self := Self{App: "d1", Name: "hello", Host: "h"}
	m := self.Silence(s, time.Unix(900, 0), "no output, token s3cret", time.Unix(1000, 0))
	text, err := json.Marshal(m.Hide(func(text string) string { return strings.ReplaceAll(text, "s3cret", "***") }))
	want := `{"version":1,"id":"d1/r/silence/worker-1/3/900","event":"silence",` +
		`"text":"d1: no output, token ***","at":"1970-01-01T00:16:40Z","app":"d1","name":"hello","run":"r",` +
		`"generation":2,"instance":"worker-1","attempt":3,"host":"h","cause":"no output, token ***"}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s, %v", text, want, err)
	}
}
