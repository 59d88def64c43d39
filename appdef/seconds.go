package appdef

import "time"

// Seconds is a duration as our JSON writes it: a number of seconds.
type Seconds float64

// Duration converts to the standard type.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }
