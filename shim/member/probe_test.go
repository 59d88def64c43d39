package member

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// What was found is told again until the registry has taken it, and then no more: in an outage it takes nothing.
func TestFindingsAreToldUntilTheyAreTaken(t *testing.T) {
	p := &probe{cfg: probeConfig{log: slog.New(slog.DiscardHandler)}, owed: true}
	var told [][]registry.Finding
	answer := error(nil)
	p.cfg.record = func(_ context.Context, found []registry.Finding) error {
		told = append(told, found)
		return answer
	}
	one := registry.Finding{Kind: registry.NotReached, Inc: "a"}
	p.found = []registry.Finding{one}
	for _, step := range []struct {
		name   string
		change func()
		writes int // so far
	}{
		{"the registry is away", func() { answer = errors.New("away") }, 1},
		{"it still is", func() {}, 2},
		{"it is back", func() { answer = nil }, 3},
		{"nothing is new", func() {}, 3},
		{"it is over, and the registry is away", func() { p.found, p.owed, answer = nil, true, errors.New("away") }, 4},
		{"back", func() { answer = nil }, 5},
		{"nothing is new again", func() {}, 5},
	} {
		step.change()
		p.publish(t.Context())
		if len(told) != step.writes {
			t.Fatalf("%s: told %d times, want %d", step.name, len(told), step.writes)
		}
	}
	if len(told[2]) != 1 || len(told[4]) != 0 {
		t.Errorf("told %v, want the finding, and that it is over", told)
	}
}

// Who did not answer holds up one start, not each: it is tried again beside the run.
func TestWhoDidNotAnswerIsTriedOnce(t *testing.T) {
	row := func(inc, peer string) registry.Row { return registry.Row{Inc: inc, Peer: peer} }
	p := &probe{reached: map[string]bool{"there": true}, missing: []registry.Row{row("away", "h1:1"), row("moved", "h2:1")}}
	rows, known := p.untried([]registry.Row{row("there", "h0:1"), row("away", "h1:1"), row("moved", "h3:1"), row("new", "h4:1")})
	if len(rows) != 2 || rows[0].Inc != "moved" || rows[1].Inc != "new" || len(known) != 1 || known[0].Inc != "away" {
		t.Errorf("tried before the start: %v, beside the run: %v", rows, known)
	}
}

// TestUnreachablePeersAreLoggedOnce holds that who is not reached for hours is in the log once, and again when it has
// changed.
func TestUnreachablePeersAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	nothing := func(_, _ string) {}
	p := &probe{cfg: probeConfig{warn: nothing, mended: nothing, log: slog.New(slog.NewTextHandler(&log, nil))}}
	worker := []string{"worker-1 at 10.0.0.2 (connection refused)"}
	for _, tt := range []struct {
		missing, beside []string
		logs            int
	}{
		{worker, nil, 1},
		{worker, nil, 0},
		{append(worker, "worker-2 at 10.0.0.3 (no answer within 2s)"), nil, 1},
		{worker, []string{"ps-0"}, 2},
		{worker, []string{"ps-0"}, 0},
		{nil, []string{"ps-0"}, 0},
		{worker, nil, 1}, // it has answered in between
		{nil, nil, 0},
	} {
		log.Reset()
		p.show(tt.missing, tt.beside)
		if got := strings.Count(log.String(), "level=WARN"); got != tt.logs {
			t.Errorf("%q beside %q: logged %d times, want %d\n%s", tt.missing, tt.beside, got, tt.logs, log.String())
		}
	}
}
