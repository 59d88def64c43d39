package message

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

func TestPatience(t *testing.T) {
	policy := machine.Policy{Grace: 25 * time.Second, Barrier: 10 * time.Minute}
	for _, tt := range []struct {
		name            string
		phase           machine.Phase
		ready, stopping bool
		terms           int
		leaving         bool
		stage           time.Duration
		want            time.Duration // from the phase's beginning
	}{
		{name: "what is staged has its own limit", phase: machine.Staging, stage: 600 * time.Second, want: 10 * time.Minute},
		{name: "or none", phase: machine.Staging, want: time.Hour},
		{name: "the barrier", phase: machine.Waiting, want: 15 * time.Minute},
		{name: "the barrier of a later generation", phase: machine.Waiting, ready: true},
		{name: "a standby has none", phase: machine.Standby},
		{name: "running", phase: machine.Running, ready: true},
		{name: "stopped for a generation", phase: machine.Stopping, ready: true},
		{name: "stopped by the manager", phase: machine.Stopping, ready: true, terms: 1, want: 35 * time.Second},
		{name: "stopped by the manager while outputs are left", phase: machine.Stopping, ready: true, terms: 1, leaving: true, stage: 600 * time.Second, want: 10 * time.Minute},
		{name: "stopped at the barrier", phase: machine.Leaving, terms: 1, want: 15 * time.Second},
		{name: "done, outputs are left", phase: machine.Done, ready: true, stopping: true, leaving: true, stage: 60 * time.Second, want: time.Minute},
		{name: "outputs are left, nobody asks for a stop", phase: machine.Running, ready: true, leaving: true, stage: 60 * time.Second},
	} {
		a := Agent{
			State: machine.State{Phase: tt.phase, Policy: policy},
			Stage: tt.stage, Leaving: tt.leaving, Ready: tt.ready, Stopping: tt.stopping,
		}
		a.State.Terms = tt.terms
		since := time.Unix(1e9, 0)
		if got := a.patience(since, since); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got, want := a.patience(since, since.Add(time.Second)), max(0, tt.want-time.Second); got != want {
			t.Errorf("%s, a second later: got %s, want %s", tt.name, got, want)
		}
		if got := a.patience(since, since.Add(2*time.Hour)); got != 0 {
			t.Errorf("%s, two hours later: got %s, want none", tt.name, got)
		}
	}
}

func TestStatusLine(t *testing.T) {
	step := int64(1200)
	for _, tt := range []struct {
		in     status.Instance
		absent []string
		want   string
	}{
		{status.Instance{Phase: "claiming"}, nil, "claiming"},
		{status.Instance{Identity: status.Identity{Instance: "ps-0", Component: "ps"}, Phase: "staging", Cause: "inputs: 3 of\n9 files"}, nil, "ps-0 staging: inputs: 3 of 9 files"},
		{
			status.Instance{Identity: status.Identity{Instance: "ps-0", Component: "ps"}, Phase: "waiting", Starts: status.Starts{Generation: 1}},
			[]string{"worker-1", "worker-2"},
			"ps-0 waiting: generation 1, missing worker-1, worker-2",
		},
		{
			status.Instance{Identity: status.Identity{Instance: "ps-0", Component: "ps"}, Phase: "waiting", Starts: status.Starts{Generation: 1}},
			strings.Split("abcdefghij", ""), "ps-0 waiting: generation 1, missing a, b, c, d, e, f, g, h, and 2 more",
		},
		{
			status.Instance{
				Identity: status.Identity{Instance: "worker-0", Component: "worker"}, Phase: "running",
				Starts: status.Starts{Generation: 2, Attempt: 3}, Advance: status.Advance{Progress: new(0.4), CheckpointStep: &step},
			},
			nil, "worker-0 running: generation 2, attempt 3, progress 40 %, checkpoint of step 1200",
		},
	} {
		if got := statusLine(tt.in, tt.absent); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestLastStatus(t *testing.T) {
	verdict := func(v registry.Verdict) machine.State {
		return machine.State{Directive: registry.Directive{Verdict: &v}}
	}
	var interrupted, refused machine.State
	interrupted.Terms, refused.Cause = 1, "index worker-0 is held"
	for _, tt := range []struct {
		final machine.State
		want  string
	}{
		{verdict(registry.Verdict{Outcome: registry.Succeeded, Cause: "all 2 instances of worker are done"}), "succeeded: all 2 instances of worker are done"},
		{verdict(registry.Verdict{Outcome: registry.Failed, Class: registry.ClassApp, Cause: "worker-0 exited with 3"}), "failed (app-error): worker-0 exited with 3"},
		{interrupted, "interrupted: it resumes when it is started again"},
		{refused, "index worker-0 is held"},
	} {
		if got := Last(tt.final); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got := OfError(exit.Silent{Code: 3}) + OfError(nil); got != "" {
		t.Errorf("of what has been said: got %q", got)
	}
	if got, want := OfError(exit.Usagef("agent: no\ncomponent")), "agent: no component"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
