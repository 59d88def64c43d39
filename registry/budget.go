package registry

import (
	"time"
)

// Fresh is the budget of an instance or gang after a full restart: it keeps the checkpoint step of the last charge.
func (b Budget) Fresh() Budget { return Budget{Step: b.Step, FromBeginning: b.FromBeginning} }

// Budget counts restarts: Used since the last reset, or within the window that At remembers.
type Budget struct {
	Used int         `json:"used"`
	At   []time.Time `json:"at,omitempty"`
	Step int64       `json:"step,omitempty"` // newest checkpoint step at the last charge
	// the gang restarted without a checkpoint, and has not resumed from one since: steps do not reset the budget
	FromBeginning bool  `json:"anew,omitempty"`
	Later         later `json:"-"`
}
