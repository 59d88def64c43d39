package apps

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A run that is over is read again after that time, spread so that not all are read at once: longer where the registry
// tells which apps have agents, for without one nothing begins anew.
const (
	overFor      = 5 * time.Minute
	overForBlind = 20 * time.Second
)

// Over keeps the rows of runs that are over. Its methods may be called from any goroutine, and do nothing on nil.
type Over struct {
	mu   sync.Mutex
	rows map[string]overRow
}

type overRow struct {
	Row
	read   time.Time
	spread float64 // 0.5 to 1.5 of the time
}

// keep takes a row; one whose agents live changes.
func (o *Over) keep(row Row, now time.Time) {
	if o == nil || row.Running() || row.Live > 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil {
		o.rows = map[string]overRow{}
	}
	o.rows[row.App] = overRow{row, now, 0.5 + rand.Float64()}
}

// wake gives up the rows of apps that an agent lives for, which is known or not, and those that are old.
func (o *Over) wake(alive map[string]bool, known bool, now time.Time) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	most := float64(overFor)
	if !known {
		most = float64(overForBlind)
	}
	for app, one := range o.rows {
		if alive[app] || float64(now.Sub(one.read)) > most*one.spread {
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
