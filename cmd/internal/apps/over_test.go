package apps

import (
	"testing"
	"time"
)

// What is over is kept until an agent of the app lives again, or for a while.
func TestOver(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var o Over
	failed := "failed"
	for _, row := range []Row{{App: "runs"}, {App: "ends", Outcome: &failed, Live: 1}, {App: "over", Outcome: &failed}, {App: "again", Outcome: &failed}} {
		o.keep(row, at)
	}
	kept := func() (names string) {
		for _, app := range []string{"runs", "ends", "over", "again"} {
			if _, ok := o.row(app); ok {
				names += app + " "
			}
		}
		return names
	}
	if got := kept(); got != "over again " {
		t.Errorf("kept %q", got)
	}
	o.wake(map[string]bool{"again": true}, true, at.Add(time.Minute))
	if got := kept(); got != "over " {
		t.Errorf("one lives again: kept %q", got)
	}
	o.wake(nil, true, at.Add(2*time.Hour))
	if got := kept(); got != "" {
		t.Errorf("after hours: kept %q", got)
	}
	o.keep(Row{App: "over", Outcome: &failed}, at)
	o.wake(nil, false, at.Add(time.Minute))
	if got := kept(); got != "" {
		t.Errorf("where nobody says who lives, after a minute: kept %q", got)
	}
	var none *Over
	none.keep(Row{App: "over", Outcome: &failed}, at)
	none.wake(nil, true, at)
	if _, ok := none.row("over"); ok {
		t.Error("nil keeps")
	}
}
