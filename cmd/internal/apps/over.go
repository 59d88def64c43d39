package apps

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// When the row of a run that is over is read again: after a time, spread so that not all are read at once; when an
// agent of the app lives; and when its directive was written since, for another run may have begun and ended between
// two looks. Of many rows some are compared at each look, the others at the next ones; all are where nobody has looked
// for a while, or the registry does not tell which apps have agents.
const (
	overFor     = 5 * time.Minute
	mostChecked = 1024
	longAgo     = 15 * time.Second
)

// Over keeps the rows of runs that are over. Its methods may be called from any goroutine, and do nothing on nil.
type Over struct {
	mu     sync.Mutex
	rows   map[string]overRow
	looked time.Time // last
}

type overRow struct {
	Row
	index         uint64 // of its directive
	read, checked time.Time
	spread        float64 // 0.5 to 1.5 of the time
}

// keep takes a row; one whose agents live changes.
func (o *Over) keep(row Row, index uint64, now time.Time) {
	if o == nil || row.Running() || row.Live > 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil {
		o.rows = map[string]overRow{}
	}
	o.rows[row.App] = overRow{row, index, now, now, 0.5 + rand.Float64()}
}

// wake gives up the rows of apps that an agent lives for, which is known or not, and those that are old. It returns the
// apps whose directives are to be compared, with their indexes.
func (o *Over) wake(alive map[string]bool, known bool, now time.Time) (doubtful map[string]uint64) {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for app, one := range o.rows {
		if alive[app] || float64(now.Sub(one.read)) > float64(overFor)*one.spread {
			delete(o.rows, app)
		}
	}
	apps := slices.Collect(maps.Keys(o.rows))
	if known && now.Sub(o.looked) < longAgo && len(apps) > mostChecked {
		slices.SortFunc(apps, func(a, b string) int { return o.rows[a].checked.Compare(o.rows[b].checked) })
		apps = apps[:mostChecked]
	}
	o.looked = now
	doubtful = map[string]uint64{}
	for _, app := range apps {
		doubtful[app] = o.rows[app].index
	}
	return doubtful
}

// check gives up the rows of doubtful apps that are not unchanged.
func (o *Over) check(doubtful map[string]uint64, unchanged []string, now time.Time) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	same := map[string]bool{}
	for _, app := range unchanged {
		same[app] = true
	}
	for app, index := range doubtful {
		one, ok := o.rows[app]
		switch {
		case !ok || one.index != index: // another look has read it anew
		case same[app]:
			one.checked = now
			o.rows[app] = one
		default:
			delete(o.rows, app)
		}
	}
}

// row is what is kept of an app.
func (o *Over) row(app string) (Row, bool) {
	if o == nil {
		return Row{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	one, ok := o.rows[app]
	return one.Row, ok
}
