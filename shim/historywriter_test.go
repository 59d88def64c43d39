package shim

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
)

// TestHistoryWarnings: a run that is all in the history store is not said to lack there when old runs stay.
func TestHistoryWarnings(t *testing.T) {
	full, stay := errors.New("disk full"), errors.New("old runs were not removed: no list")
	const lacks, stays = "the history store does not have all of this run: disk full", "the history store: old runs were not removed: no list"
	for _, test := range []struct {
		missing, unswept error
		want             map[string]string
	}{
		{nil, nil, nil},
		{full, nil, map[string]string{warnHistory: lacks}},
		{nil, stay, map[string]string{warnSweep: stays}},
		{full, stay, map[string]string{warnHistory: lacks, warnSweep: stays}},
	} {
		log := slog.New(slog.DiscardHandler)
		j := journal.New(log, t.TempDir(), func() machine.State { return machine.State{} }, func(s string) string { return s })
		historyWriter{log: log, journal: j}.tell(test.missing, test.unswept)
		all := j.Warnings()
		for _, w := range all {
			if w.Text != test.want[w.Kind] {
				t.Errorf("%v, %v: got %s: %s", test.missing, test.unswept, w.Kind, w.Text)
			}
		}
		if len(all) != len(test.want) {
			t.Errorf("%v, %v: got %v", test.missing, test.unswept, all)
		}
		j.Close()
	}
}
