package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim"
)

// TestNeighboursAreLoggedOnce holds that who is not reached for hours is in the log once, and again when it has changed.
func TestNeighboursAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	n := &neighbours{agent: &agent{loop: shim.NewAgent(), log: slog.New(slog.NewTextHandler(&log, nil))}}
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
		n.tell(tt.missing, tt.beside)
		if got := strings.Count(log.String(), "level=WARN"); got != tt.logs {
			t.Errorf("%q beside %q: logged %d times, want %d\n%s", tt.missing, tt.beside, got, tt.logs, log.String())
		}
	}
}
