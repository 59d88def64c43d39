package registry

import (
	"time"
)

// Fresh is the account of an instance or a gang that begins again: a checkpoint that was charged for stays so.
func (b Budget) Fresh() Budget { return Budget{Step: b.Step, Anew: b.Anew} }

// Budget counts restarts: Used since the last refill or within the window that At remembers.
type Budget struct {
	Used int         `json:"used"`
	At   []time.Time `json:"at,omitempty"`
	Step int64       `json:"step,omitempty"` // newest checkpoint step when it was last charged
	// the gang began anew, and has gone on from no step since: none refills the account
	Anew bool `json:"anew,omitempty"`
}
