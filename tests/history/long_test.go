//go:build long

package history

import (
	"testing"
	"time"
)

// TestHistoryLong lives through all kinds of faults for ten minutes with 50 agents.
func TestHistoryLong(t *testing.T) {
	runHistory(t, options{
		agents: 50, hosts: 6, length: 10 * time.Minute, pace: 2 * time.Second, away: 75 * time.Second, settle: 6 * time.Minute,
		movePercent: 15, work: 12, falseClocks: 1,
		faults: []string{
			"agent", "guard", "tree", "process", "term", "pause", "leader", "servers", "host", "blind", "late", "second", "stop",
			"clock", "cut", "delete", "restore",
		},
	})
}
