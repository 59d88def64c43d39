package registry

import "time"

// Step decides what to do about a view. It is pure: the same conductor, time and view give the same
// effects.
func (c Conductor) Step(now time.Time, v View) (Conductor, []Effect) {
	return c, nil
}
