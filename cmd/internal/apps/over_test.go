package apps

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"
)

// What is over is kept until an agent of the app lives again, or for a while.
func TestOver(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var o Over
	failed := "failed"
	for _, row := range []Row{{App: "runs"}, {App: "ends", Outcome: &failed, Live: 1}, {App: "over", Outcome: &failed}, {App: "again", Outcome: &failed}} {
		o.keep(row, 7, at)
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
	var none *Over
	none.keep(Row{App: "over", Outcome: &failed}, 7, at)
	none.wake(nil, true, at)
	if _, ok := none.row("over"); ok {
		t.Error("nil keeps")
	}
}

// A run that began and ended between two looks has written its app's directive: its row is read anew.
func TestOverIsCompared(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := "failed"
	var o Over
	const many = 3 * mostChecked
	for i := range many {
		o.keep(Row{App: strconv.Itoa(i), Outcome: &failed}, 7, at)
	}
	if n := len(o.wake(nil, true, at)); n != many {
		t.Errorf("at the first look %d are compared, want all", n)
	}
	seen := map[string]bool{}
	for s := range 3 {
		now := at.Add(time.Duration(s+1) * time.Second)
		doubtful := o.wake(nil, true, now)
		if len(doubtful) != mostChecked {
			t.Errorf("%d are compared, want %d", len(doubtful), mostChecked)
		}
		for app := range doubtful {
			seen[app] = true
		}
		o.check(doubtful, slices.Collect(maps.Keys(doubtful)), now)
	}
	if len(seen) != many {
		t.Errorf("in three looks %d were compared, want all", len(seen))
	}
	if n := len(o.wake(nil, false, at.Add(4*time.Second))); n != many {
		t.Errorf("where nobody says who lives %d are compared, want all", n)
	}
	if n := len(o.wake(nil, true, at.Add(time.Minute))); n != many {
		t.Errorf("after a minute without a look %d are compared, want all", n)
	}
	o.keep(Row{App: "2", Outcome: &failed}, 9, at) // by another look
	o.check(map[string]uint64{"0": 7, "1": 7, "2": 7}, []string{"0"}, at)
	for app, want := range map[string]bool{"0": true, "1": false, "2": true, "3": true} {
		if _, ok := o.row(app); ok != want {
			t.Errorf("%s is kept: %v, want %v", app, ok, want)
		}
	}
}
